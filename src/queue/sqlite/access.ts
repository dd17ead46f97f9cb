import type { Topic } from "../store.ts";
import type { Counts } from "./counts.ts";
import type { HeldAttempts } from "./held-attempts.ts";
import type { Statements } from "./statements.ts";
import type { SteadyTime } from "./steady-time.ts";

/** What a read needs. It sees committed rows, because transactions begin and end within one turn of the event loop. */
export interface Reading {
  readonly sql: Statements;
  readonly counts: Counts;
  readonly time: SteadyTime;
  readonly held: HeldAttempts;
}

/** What a write needs: it runs in a savepoint of its own, and whatever it throws undoes all that it did. */
export interface Writing extends Reading {
  /** The wall clock when the write began, as records carry it. */
  readonly now: string;
  /** Wake whoever waits for this topic, once the write is committed. */
  touch(topic: Topic): void;
}

/**
 * Run a part of a write in a savepoint of its own. What it throws undoes its rows and the numbers of jobs, and is thrown on; memory of the caller's own
 * is the caller's to put back.
 */
export function inSavepoint<T>(w: Writing, part: () => T): T {
  const before = w.counts.snapshot();
  w.sql.run("SAVEPOINT part");
  try {
    const value = part();
    w.sql.run("RELEASE part");
    return value;
  } catch (error) {
    w.sql.run("ROLLBACK TO part");
    w.sql.run("RELEASE part");
    w.counts.restore(before);
    throw error;
  }
}
