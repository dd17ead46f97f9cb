import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { ErrorCode, RelayError } from "../../src/domain/errors.ts";
import { isRelayError } from "../../src/domain/errors.ts";
import { fileSystemKind } from "../../src/lib/files/file-system.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openDatabase } from "../../src/queue/sqlite/database-file.ts";
import { MIGRATIONS } from "../../src/queue/sqlite/migrate.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { command } from "../contract/queue-store/scene.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const OPTIONS = { clock: systemClock, activeJobsMax: 10_000, leaseSeconds: 120 };
const makeDirectory = temporaryDirectories();

/** A closed queue with some jobs in it, and the name of its file. */
async function closedQueue(jobs = 40): Promise<{ directory: string; file: string }> {
  const directory = makeDirectory();
  const store = openQueue(directory, OPTIONS);
  await Promise.all(Array.from({ length: jobs }, () => store.submit(command(), "workload")));
  await store.close();
  return { directory, file: path.join(directory, "queue.db") };
}

function refusal(directory: string, code: ErrorCode): RelayError {
  let error: unknown;
  try {
    void openQueue(directory, OPTIONS).close();
  } catch (thrown) {
    error = thrown;
  }
  if (!isRelayError(error, code)) expect(error ?? "it was opened").toBe(code);
  return error as RelayError;
}

/** Every file of a directory with its bytes. */
const contents = (directory: string): Record<string, string> =>
  Object.fromEntries(fs.readdirSync(directory).map((name) => [name, fs.readFileSync(path.join(directory, name)).toString("base64")]));

function raw(file: string, ...statements: string[]): void {
  const database = new Database(file, { create: true, readwrite: true });
  for (const statement of statements) database.run(statement);
  database.close();
}

describe("a new queue", () => {
  test("is made private, whole, and with nothing left beside it when closed", async () => {
    const { directory, file } = await closedQueue();
    expect(fs.readdirSync(directory).toSorted()).toEqual(["committed.json", "queue.db"]);
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    const database = new Database(file, { readonly: true });
    expect(database.query("PRAGMA application_id").get()).toEqual({ application_id: 0x434c494f });
    expect(database.query("PRAGMA user_version").get()).toEqual({ user_version: MIGRATIONS.length });
    expect(database.query("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    database.close();
  });

  test("is opened with the settings that durability rests on", () => {
    const { database } = openDatabase(makeDirectory());
    const pragma = (name: string) => Object.values(database.query<Record<string, unknown>, []>(`PRAGMA ${name}`).get() ?? {})[0];
    const settings = ["journal_mode", "synchronous", "locking_mode", "foreign_keys"].map((name) => [name, pragma(name)]);
    const FULL = 2;
    expect(settings).toEqual([
      ["journal_mode", "wal"],
      ["synchronous", FULL],
      ["locking_mode", "exclusive"],
      ["foreign_keys", 1],
    ]);
    database.close();
  });

  test("is made although an earlier try was cut off", async () => {
    const directory = makeDirectory();
    fs.writeFileSync(path.join(directory, "queue.db.new"), "half of someth");
    const store = openQueue(directory, OPTIONS);
    await store.submit(command(), "workload");
    await store.close();
    expect(fs.readdirSync(directory).toSorted()).toEqual(["committed.json", "queue.db"]);
  });

  test("makes its directory, and says by name when it cannot", () => {
    const directory = makeDirectory();
    fs.writeFileSync(path.join(directory, "in-the-way"), "");
    const error = refusal(path.join(directory, "in-the-way", "core"), "queue_unavailable");
    expect(error.data).toMatchObject({ file: path.join(directory, "in-the-way", "core", "queue.db"), reason: "ENOTDIR" });
    void openQueue(path.join(directory, "a", "b"), OPTIONS).close();
    expect(fs.statSync(path.join(directory, "a", "b")).mode & 0o777).toBe(0o700);
  });
});

describe("a file that is not to be used is refused and left byte for byte as it was", () => {
  const cases: readonly (readonly [string, ErrorCode, (file: string) => void])[] = [
    ["another program's database", "queue_foreign", (file) => replaced(file, () => raw(file, "CREATE TABLE notes (text TEXT)"))],
    ["another program's id", "queue_foreign", (file) => raw(file, "PRAGMA application_id = 42")],
    ["no id at all", "queue_foreign", (file) => raw(file, "PRAGMA application_id = 0")],
    ["a newer schema", "queue_newer", (file) => raw(file, `PRAGMA user_version = ${MIGRATIONS.length + 6}`)],
    ["no schema number", "queue_corrupt", (file) => raw(file, "PRAGMA user_version = 0")],
    ["a schema number below all", "queue_corrupt", (file) => raw(file, "PRAGMA user_version = -3")],
    ["a table that is gone", "queue_corrupt", (file) => raw(file, "DROP TABLE progress")],
    ["an index that is gone", "queue_corrupt", (file) => raw(file, "DROP INDEX jobs_ready")],
    ["a table of another shape", "queue_corrupt", (file) => raw(file, "ALTER TABLE segments RENAME COLUMN base TO start")],
    ["a table that is not ours", "queue_corrupt", (file) => raw(file, "CREATE TABLE notes (text TEXT)")],
    ["an index that is not ours", "queue_corrupt", (file) => raw(file, "CREATE INDEX by_kind ON jobs (kind)")],
    ["a view that is not ours", "queue_corrupt", (file) => raw(file, "CREATE VIEW kinds AS SELECT kind FROM jobs")],
    [
      "a trigger of a table's name",
      "queue_corrupt",
      (file) => raw(file, "CREATE TRIGGER jobs AFTER INSERT ON jobs BEGIN DELETE FROM jobs; END"),
    ],
    ["an empty file", "queue_corrupt", (file) => fs.truncateSync(file, 0)],
    ["less than a header", "queue_corrupt", (file) => fs.truncateSync(file, 50)],
    ["half a file", "queue_corrupt", (file) => fs.truncateSync(file, Math.floor(fs.statSync(file).size / 2 / 4_096) * 4_096)],
    ["all but the last page", "queue_corrupt", (file) => fs.truncateSync(file, fs.statSync(file).size - 4_096)],
    ["all but the last byte", "queue_corrupt", (file) => fs.truncateSync(file, fs.statSync(file).size - 1)],
    ["text", "queue_corrupt", (file) => fs.writeFileSync(file, "not a database\n".repeat(1_000))],
    ["zeros", "queue_corrupt", (file) => fs.writeFileSync(file, Buffer.alloc(16_384))],
    ["a destroyed header", "queue_corrupt", (file) => overwrite(file, 0, 100)],
    ["a destroyed page", "queue_corrupt", (file) => overwrite(file, 2 * 4_096, 3_000)],
  ];
  for (const [name, code, damage] of cases) {
    test(`${name}: ${code}`, async () => {
      const { directory, file } = await closedQueue();
      damage(file);
      fs.rmSync(`${file}-shm`, { force: true });
      fs.rmSync(`${file}-wal`, { force: true });
      const before = contents(directory);
      const error = refusal(directory, code);
      expect(error.message).toContain(file);
      expect(error.data["file"]).toBe(file);
      expect(contents(directory)).toEqual(before);
      expect(refusal(directory, code).message).toBe(error.message);
    });
  }

  test("a newer schema is named, and so is the newest that is known", async () => {
    const { directory, file } = await closedQueue();
    raw(file, `PRAGMA user_version = ${MIGRATIONS.length + 6}`);
    expect(refusal(directory, "queue_newer").data).toMatchObject({ schema: MIGRATIONS.length + 6, newest_known: MIGRATIONS.length });
  });

  test("a write-ahead log without its file", async () => {
    const { directory, file } = await closedQueue();
    fs.renameSync(file, `${file}-wal`);
    refusal(directory, "queue_corrupt");
    expect(fs.readdirSync(directory).toSorted()).toEqual(["committed.json", "queue.db-wal"]);
  });

  test("damage beside an unfinished write-ahead log: neither is touched", async () => {
    const { directory, file } = await closedQueue();
    const child = Bun.spawnSync([process.execPath, path.join(import.meta.dir, "submitting-child.ts"), directory, "30", "die"]);
    expect(child.signalCode).toBe("SIGKILL");
    expect(fs.statSync(`${file}-wal`).size).toBeGreaterThan(0);
    overwrite(file, 2 * 4_096, 3_000);
    // The page must not lie in the log, which would cover the damage: so damage them all but the first.
    overwrite(file, 4_096, fs.statSync(file).size - 4_096);
    overwriteLog(`${file}-wal`);
    const before = contents(directory);
    refusal(directory, "queue_corrupt");
    expect(contents(directory)).toEqual(before);
  });

  function replaced(file: string, make: () => void): void {
    fs.rmSync(file);
    make();
  }

  function overwrite(file: string, at: number, length: number): void {
    const fd = fs.openSync(file, "r+");
    fs.writeSync(fd, Buffer.alloc(length, 0xab), 0, length, at);
    fs.closeSync(fd);
  }

  /** Spoil every frame but the first, so that recovery stops there. */
  function overwriteLog(file: string): void {
    const first = 32 + 24 + 4_096;
    overwrite(file, first, fs.statSync(file).size - first);
  }
});

describe("two openers", () => {
  test("the second is refused with what to do, and the first goes on", async () => {
    const { directory } = await closedQueue();
    const first = openQueue(directory, OPTIONS);
    try {
      const error = refusal(directory, "queue_unavailable");
      expect(error.data["reason"]).toBe("SQLITE_BUSY");
      expect(error.data["file_system"]).toBe(fileSystemKind(directory));
      expect(error.data["file_system"]).not.toBe("unknown");
      expect(error.hint).toContain("CLIO_RELAY_CORE_DIR");
      await first.submit(command(), "workload");
    } finally {
      await first.close();
    }
    const next = openQueue(directory, OPTIONS);
    expect((await next.stats()).active).toBe(41);
    await next.close();
  });

  test("another process is refused alike", async () => {
    const { directory } = await closedQueue();
    const first = openQueue(directory, OPTIONS);
    try {
      const child = Bun.spawnSync([process.execPath, path.join(import.meta.dir, "submitting-child.ts"), directory, "1", "end"]);
      expect(child.exitCode).not.toBe(0);
      expect(child.stderr.toString()).toContain("queue_unavailable");
    } finally {
      await first.close();
    }
  });

  test("an opener that only looks cannot get in while the queue is open", async () => {
    const { directory, file } = await closedQueue();
    const store = openQueue(directory, OPTIONS);
    try {
      const onlooker = new Database(file, { readonly: true });
      expect(() => onlooker.query("SELECT count(*) FROM jobs").get()).toThrow("locked");
      onlooker.close();
      await store.submit(command(), "workload");
    } finally {
      await store.close();
    }
  });
});

describe("an older schema", () => {
  const next = "ALTER TABLE jobs ADD COLUMN shade TEXT; CREATE INDEX jobs_shade ON jobs (shade) WHERE shade IS NOT NULL;";

  test("is backed up and migrated, keeping everything", async () => {
    const { directory, file } = await closedQueue();
    const { database } = openDatabase(directory, [...MIGRATIONS, next]);
    expect(database.query("SELECT count(*) AS n, count(shade) AS shades FROM jobs").get()).toEqual({ n: 40, shades: 0 });
    expect(database.query("PRAGMA user_version").get()).toEqual({ user_version: MIGRATIONS.length + 1 });
    // While it is open, and the log not yet gone: the header says it to who cannot open the file (sqlite.org/fileformat.html, 1.3.15).
    expect(fs.readFileSync(file).readUInt32BE(60)).toBe(MIGRATIONS.length + 1);
    database.close();
    const backup = `${file}.v${MIGRATIONS.length}.bak`;
    expect(fs.statSync(backup).mode & 0o777).toBe(0o600);
    refusal(directory, "queue_newer");
    fs.renameSync(backup, file);
    const restored = openQueue(directory, OPTIONS);
    expect((await restored.audit({ deep: true })).findings).toEqual([]);
    expect((await restored.stats()).active).toBe(40);
    await restored.close();
  });

  test("stays as it is when a step of the migration fails", async () => {
    const { directory } = await closedQueue();
    const broken = "ALTER TABLE jobs ADD COLUMN shade TEXT; ALTER TABLE no_such_table ADD COLUMN x TEXT;";
    expect(() => openDatabase(directory, [...MIGRATIONS, next, broken])).toThrow();
    const store = openQueue(directory, OPTIONS);
    expect((await store.audit({ deep: true })).findings).toEqual([]);
    await store.close();
    // Half of the broken step would stand in the way of the whole one.
    openDatabase(directory, [...MIGRATIONS, next]).database.close();
  });
});
