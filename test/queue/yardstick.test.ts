import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import path from "node:path";
import { bareDatabase, bareInsert, submissionRows } from "../../bench/yardsticks/bare-insert.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
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

test("the yardstick's database has the settings of the queue's", () => {
  const settings = [
    "journal_mode",
    "synchronous",
    "locking_mode",
    "foreign_keys",
    "temp_store",
    "cache_size",
    "journal_size_limit",
    "page_size",
    "mmap_size",
    "wal_autocheckpoint",
    "auto_vacuum",
    "cache_spill",
    "secure_delete",
  ];
  const read = (database: Database) =>
    Object.fromEntries(settings.map((name) => [name, database.query<Record<string, unknown>, []>(`PRAGMA ${name}`).get()]));
  const { database: ours } = openDatabase(makeDirectory());
  const bare = bareDatabase(path.join(makeDirectory(), "queue.db"));
  try {
    expect(read(bare)).toEqual(read(ours));
    expect(read(ours)["cache_size"]).toEqual({ cache_size: -8192 });
  } finally {
    ours.close();
    bare.close();
  }
});

test("the yardstick measures, and leaves nothing behind", async () => {
  const directory = makeDirectory();
  const { submissionsPerSecond, transaction, fsync } = bareInsert(directory, 30);
  expect(submissionsPerSecond).toBeGreaterThan(0);
  expect(transaction.runs).toBe(30);
  expect(fsync.p50).toBeGreaterThan(0);
  expect(await Array.fromAsync(new Bun.Glob("**").scan({ cwd: directory, onlyFiles: false }))).toEqual([]);
});
