import type { Topic } from "../store.ts";
import type { Counts } from "./counts.ts";
import type { Statements } from "./statements.ts";
import type { SteadyTime } from "./steady-time.ts";

/** What a read needs. It sees committed rows, because transactions begin and end within one turn of the event loop. */
export interface Reading {
  readonly sql: Statements;
  readonly counts: Counts;
  readonly time: SteadyTime;
}

/** What a write needs: it runs in a savepoint of its own, and whatever it throws undoes all that it did. */
export interface Writing extends Reading {
  /** The wall clock when the write began, as records carry it. */
  readonly now: string;
  /** Wake whoever waits for this topic, once the write is committed. */
  touch(topic: Topic): void;
}
