import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import path from "node:path";
import { bareInsert, submissionRows } from "../../bench/yardsticks/bare-insert.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { command } from "../contract/queue-store/scene.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const makeDirectory = temporaryDirectories();

test("the yardstick of submissions writes the rows that a submission writes", async () => {
  const directory = makeDirectory();
  const store = openQueue(directory, { clock: systemClock, activeJobsMax: 10, leaseSeconds: 120 });
  const spec = { ...command().spec, argv: ["python3", "train.py", "--epochs", "3"] };
  await store.submit(command({ spec }), "workload");
  await store.close();
  const database = new Database(path.join(directory, "queue.db"), { readonly: true });
  const rows = (table: string) => database.query<Record<string, unknown>, []>(`SELECT * FROM ${table}`).all();
  const bare = submissionRows(1);
  const [job] = rows("jobs");
  for (const [table, expected] of [
    ["jobs", [bare.job]],
    ["idempotency", [bare.idempotency]],
    ["tasks", [bare.task]],
    ["events", bare.events],
  ] as const) {
    const written = rows(table);
    expect(written).toHaveLength(expected.length);
    written.forEach((row, index) => {
      for (const [column, value] of Object.entries(expected[index]!))
        expect([table, column, shape(row[column])]).toEqual([table, column, shape(value)]);
    });
  }
  for (const table of ["task_events", "progress", "artifacts", "attempts", "leases", "segments", "emit_offsets"])
    expect(rows(table)).toEqual([]);
  expect(job?.["next_seq"]).toBe(3);
  database.close();
});

/** A value with what differs from one submission to the next made alike: ids, digests, instants. */
const shape = (value: unknown): unknown =>
  typeof value === "string"
    ? value
        .replace(/\b[0-9a-f]{64}\b/g, "DIGEST")
        .replace(/_[0-9a-f]{32}\b/g, "_ID")
        .replace(/\d{4}-\d{2}-\d{2}T[\d:.]{12}Z/g, "INSTANT")
    : value;

test("the yardstick measures, and leaves nothing behind", async () => {
  const directory = makeDirectory();
  const { submissionsPerSecond, transaction, fsync } = bareInsert(directory, 30);
  expect(submissionsPerSecond).toBeGreaterThan(0);
  expect(transaction.runs).toBe(30);
  expect(fsync.p50).toBeGreaterThan(0);
  expect(await Array.fromAsync(new Bun.Glob("**").scan({ cwd: directory, onlyFiles: false }))).toEqual([]);
});
