import { afterEach, describe, expect, test } from "bun:test";
import { RelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import type { Reading, Writing } from "../../src/queue/sqlite/access.ts";
import { Committer } from "../../src/queue/sqlite/committer.ts";
import { Counts } from "../../src/queue/sqlite/counts.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { HeldAttempts } from "../../src/queue/sqlite/held-attempts.ts";
import { Statements } from "../../src/queue/sqlite/statements.ts";
import { SteadyTime } from "../../src/queue/sqlite/steady-time.ts";
import type { Topic } from "../../src/queue/store.ts";
import { refused } from "../contract/queue-store/scene.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const makeDirectory = temporaryDirectories();
const opened: (() => void)[] = [];
afterEach(() => {
  for (const close of opened.splice(0)) close();
});

/** Counts transactions and savepoints. */
class Counting extends Statements {
  begun = 0;
  savepoints = 0;

  override run(
    sql: string,
    ...values: Parameters<Statements["run"]> extends [string, ...infer V] ? V : never
  ): ReturnType<Statements["run"]> {
    if (sql.startsWith("BEGIN")) this.begun += 1;
    if (sql.startsWith("SAVEPOINT")) this.savepoints += 1;
    return super.run(sql, ...values);
  }
}

function open(notify: (topic: Topic) => void = () => undefined, advance: () => void = () => undefined) {
  const { database, file } = openDatabase(makeDirectory());
  const sql = new Counting(database);
  opened.push(() => {
    sql.finalize();
    database.close();
  });
  sql.run("CREATE TABLE notes (n INTEGER PRIMARY KEY)");
  const reading: Reading = { sql, counts: new Counts(), time: new SteadyTime(systemClock), held: new HeldAttempts() };
  const committer = new Committer(database, file, reading, systemClock, notify, { advance });
  const notes = () => sql.all<{ n: number }>("SELECT n FROM notes ORDER BY n").map(({ n }) => n);
  const note = (n: number) => (w: Writing) => {
    w.sql.run("INSERT INTO notes (n) VALUES (?)", n);
    w.touch("queue");
    return n;
  };
  return { database, sql, reading, committer, notes, note };
}

/** Makes COMMIT itself fail: a broken reference that is looked at only then. */
const brokenAtCommit = (w: Writing): void => {
  w.sql.run("PRAGMA defer_foreign_keys = ON");
  w.sql.run("INSERT INTO events (job, seq, event_type, message, level, payload, created_at) VALUES (999, 1, 'x', 'x', 'info', '{}', '')");
};

describe("group commit", () => {
  test("what comes in together shares one transaction", async () => {
    const { database, committer, note, notes, sql } = open();
    const write = (n: number) =>
      committer.write((w) => {
        expect(database.inTransaction).toBe(true);
        return note(n)(w);
      });
    expect(await Promise.all([1, 2, 3].map(write))).toEqual([1, 2, 3]);
    expect(sql.begun).toBe(1);
    expect(database.inTransaction).toBe(false);
    expect(notes()).toEqual([1, 2, 3]);
  });

  test("commits are marked before anybody is told, but behind the answer where nothing else follows", async () => {
    const seen: string[] = [];
    const { committer, note } = open(undefined, () => seen.push("mark"));
    const told = (what: string) => () => void seen.push(what);
    await committer.write(note(1)).then(told("write"));
    await committer.write(note(2), { answersFirst: true }).then(told("answer"));
    await new Promise((done) => setImmediate(done));
    const both = [committer.write(note(3), { answersFirst: true }).then(told("answer")), committer.write(note(4)).then(told("write"))];
    await Promise.all(both);
    expect(seen).toEqual(["mark", "write", "answer", "mark", "mark", "answer", "write"]);
  });

  test("nobody is answered before the commit: within it, no promise has settled", async () => {
    const { committer, note } = open();
    const settled: number[] = [];
    const writes = [1, 2].map((n) =>
      committer.write(note(n)).then((value) => {
        settled.push(value);
      }),
    );
    const last = committer.write((w) => {
      expect(settled).toEqual([]);
      return note(3)(w);
    });
    await Promise.all([...writes, last]);
    expect(settled).toEqual([1, 2]);
  });

  test("a write that throws is undone alone, and its error is what it threw", async () => {
    const { committer, note, notes, reading } = open();
    const thrown = new RelayError("state_conflict", "not like this");
    const results = await Promise.allSettled([
      committer.write(note(1)),
      committer.write((w) => {
        note(2)(w);
        w.counts.added("command");
        throw thrown;
      }),
      committer.write(note(1)),
      committer.write(note(3)),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(results[1]).toMatchObject({ reason: thrown });
    expect(results[2]).toMatchObject({ reason: { code: "internal_error", data: { sqlite: "SQLITE_CONSTRAINT_PRIMARYKEY" } } });
    expect(notes()).toEqual([1, 3]);
    expect(reading.counts.active).toBe(0);
  });

  test("a write that comes alone needs no savepoint, and is undone all the same when it throws", async () => {
    const { committer, note, notes, reading, sql, database } = open();
    expect(await committer.write(note(1))).toBe(1);
    const thrown = new RelayError("state_conflict", "not like this");
    const failing = committer.write((w) => {
      note(2)(w);
      w.counts.added("command");
      throw thrown;
    });
    expect(await failing.catch((error: unknown) => error)).toBe(thrown);
    expect([sql.savepoints, sql.begun, database.inTransaction, reading.counts.active]).toEqual([0, 2, false, 0]);
    expect(notes()).toEqual([1]);
    await Promise.all([committer.write(note(3)), committer.write(note(4))]);
    expect(sql.savepoints).toBe(2);
    expect(notes()).toEqual([1, 3, 4]);
  });

  test("a commit that fails refuses everybody with the same error, keeps nothing, and the next batch goes on", async () => {
    const topics: Topic[] = [];
    const { committer, note, notes, reading, database } = open((topic) => topics.push(topic));
    const results = await Promise.allSettled([
      committer.write(note(1)),
      committer.write(brokenAtCommit),
      committer.write((w) => {
        w.counts.added("command");
        return note(2)(w);
      }),
    ]);
    const reasons = results.map((result) => (result.status === "rejected" ? result.reason : null));
    expect(reasons[0]).toMatchObject({ code: "internal_error", data: { sqlite: "SQLITE_CONSTRAINT_FOREIGNKEY" } });
    expect(reasons[1]).toBe(reasons[0]);
    expect(reasons[2]).toBe(reasons[0]);
    expect(notes()).toEqual([]);
    expect(topics).toEqual([]);
    expect(reading.counts.active).toBe(0);
    expect(database.inTransaction).toBe(false);
    expect(await committer.write(note(3))).toBe(3);
    expect(notes()).toEqual([3]);
    expect(topics).toEqual(["queue"]);
  });

  test("a write that loses the whole transaction refuses its batch, and the next one goes on", async () => {
    const { committer, note, notes } = open();
    const results = await Promise.allSettled([
      committer.write(note(1)),
      committer.write((w) => {
        w.sql.run("ROLLBACK");
        throw new Error("SQLite gave up");
      }),
      committer.write(note(2)),
    ]);
    for (const result of results) expect(result).toMatchObject({ status: "rejected", reason: { cause: { message: "SQLite gave up" } } });
    expect(await committer.write(note(3))).toBe(3);
    expect(notes()).toEqual([3]);
  });

  test("a transaction that somebody left open is ended first", async () => {
    const { committer, note, notes, sql } = open();
    sql.run("BEGIN");
    sql.run("INSERT INTO notes (n) VALUES (99)");
    await committer.write(note(1));
    expect(notes()).toEqual([1]);
  });

  test("listeners are called once a topic, after the commit and after the promises were settled", async () => {
    const seen: (readonly [Topic, boolean, readonly number[]])[] = [];
    const { committer, note, notes, database } = open((topic) => seen.push([topic, database.inTransaction, notes()]));
    await Promise.all([committer.write(note(1)), committer.write(note(2))]);
    expect(seen).toEqual([["queue", false, [1, 2]]]);
  });

  test("more than fits a batch is committed all the same, in order", async () => {
    const { committer, note, notes } = open();
    const numbers = Array.from({ length: 1_000 }, (_, i) => i + 1);
    expect(await Promise.all(numbers.map((n) => committer.write(note(n))))).toEqual(numbers);
    expect(notes()).toEqual(numbers);
  });

  test("closing commits what is queued and refuses what comes", async () => {
    const { committer, note, notes } = open();
    const numbers = Array.from({ length: 600 }, (_, i) => i + 1);
    const queued = Promise.all(numbers.map((n) => committer.write(note(n))));
    committer.close();
    await refused(committer.write(note(601)), "shutting_down");
    expect(await queued).toEqual(numbers);
    expect(notes()).toEqual(numbers);
  });
});
