import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type ErrorCode, isRelayError, type RelayError } from "../../src/domain/errors.ts";
import { self } from "../../src/lib/system/process-identity.ts";
import type { OwnedQueue } from "../../src/queue/owned-queue.ts";
import { auditOffline, repairOffline } from "../../src/roles/worker/offline.ts";
import { command } from "../contract/queue-store/scene.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { ownQueue as open } from "./kill-rounds.ts";
import { killedOwner } from "./killed-owner.ts";

const makeDirectory = temporaryDirectories();

async function refusal(directory: string, code: ErrorCode): Promise<RelayError> {
  try {
    await open(directory).close();
  } catch (error) {
    if (isRelayError(error, code)) return error;
    throw error;
  }
  throw new Error("it was opened");
}

const jobsOf = async ({ store }: OwnedQueue): Promise<number> => (await store.stats()).active;

const ownerOf = (directory: string) => JSON.parse(fs.readFileSync(path.join(directory, "owner.json"), "utf8"));

/** A closed queue with some jobs. */
async function closed(jobs = 40): Promise<string> {
  const directory = makeDirectory();
  const queue = open(directory);
  await Promise.all(Array.from({ length: jobs }, () => queue.store.submit(command(), "workload")));
  await queue.close();
  return directory;
}

describe("a file that is gone since its owner was killed", () => {
  test("the write-ahead log: refused, saying since when something may be missing, until a repair goes on without it", async () => {
    const directory = await closed(3);
    const pid = await killedOwner(directory, 5);
    expect(ownerOf(directory)).toMatchObject({ pid, database_open: true });
    const log = path.join(directory, "queue.db-wal");
    fs.renameSync(log, `${log}.elsewhere`);
    const { mtime } = fs.statSync(path.join(directory, "queue.db"));

    for (let again = 0; again < 2; again++) {
      const error = await refusal(directory, "queue_incomplete");
      expect(error.message).toContain(`committed after ${mtime.toISOString()} may be missing`);
      expect(error.data).toMatchObject({ missing: "queue.db-wal", pid, complete_until: mtime.toISOString() });
      expect(error.rule.hint).toContain("clio-relay queue repair");
      expect(ownerOf(directory)).toMatchObject({ pid, database_open: true });
    }
    await expect(auditOffline(directory)).rejects.toMatchObject({ code: "queue_incomplete" });

    fs.renameSync(`${log}.elsewhere`, log);
    const whole = open(directory);
    expect(await jobsOf(whole)).toBe(8);
    await whole.close();
    expect(fs.existsSync(path.join(directory, "owner.json"))).toBe(false);

    await killedOwner(directory, 1);
    fs.rmSync(log);
    const { repaired, remaining } = await repairOffline(directory);
    expect(repaired).toMatchObject([{ check: "file", subject: "queue.db-wal" }]);
    expect(remaining).toEqual([]);
    const rest = open(directory);
    expect(await jobsOf(rest)).toBe(8);
    await rest.close();
  });

  test("the file itself: no empty queue takes its place, not even by a repair", async () => {
    const directory = await closed();
    await killedOwner(directory, 1);
    for (const name of ["queue.db", "queue.db-wal", "queue.db-shm"]) fs.rmSync(path.join(directory, name), { force: true });
    expect((await refusal(directory, "queue_incomplete")).data).toMatchObject({ missing: "queue.db" });
    await expect(repairOffline(directory)).rejects.toMatchObject({ code: "queue_incomplete", hint: expect.stringContaining("backup") });
    expect(fs.existsSync(path.join(directory, "queue.db"))).toBe(false);
  });

  test("nothing is gone after a clean end, nor when the owner was killed before it had opened the file", async () => {
    const directory = await closed(2);
    expect(fs.readdirSync(directory).toSorted()).toEqual(["committed.json", "queue.db", "queue.lock"]);
    const record = { ...self(), start_time: 1, endpoint_id: "endpoint_before", since: "2030-01-01T00:00:00.000Z" };
    for (const before of [record, { ...record, database_open: false }]) {
      fs.writeFileSync(path.join(directory, "owner.json"), JSON.stringify(before));
      const queue = open(directory);
      expect(await jobsOf(queue)).toBe(2);
      expect(ownerOf(directory)).toMatchObject({ pid: process.pid, database_open: true });
      await queue.close();
    }
  });

  test("an owner that is killed before it opens the file leaves on record that the one before had it open", async () => {
    const directory = await closed(2);
    await killedOwner(directory, 1);
    const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "owning-child.ts"), directory], { stdout: "pipe" });
    while (ownerOf(directory).pid !== child.pid) await Bun.sleep(10);
    child.kill("SIGKILL");
    await child.exited;
    fs.rmSync(path.join(directory, "queue.db-wal"));
    expect((await refusal(directory, "queue_incomplete")).rule.hint).toContain("queue repair");
  });
});

describe("a damaged file", () => {
  /** Overwrite the root page of a table or an index. */
  function spoil(directory: string, name: string): void {
    const file = path.join(directory, "queue.db");
    const database = new Database(file, { readonly: true });
    const root = database.query<{ rootpage: number }, [string]>("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name)!.rootpage;
    database.close();
    for (const beside of ["-wal", "-shm"]) fs.rmSync(file + beside, { force: true });
    const bytes = fs.readFileSync(file);
    bytes.fill(0xee, (root - 1) * 4_096, root * 4_096);
    fs.writeFileSync(file, bytes);
  }

  test("in an index: the refusal names the command, which makes the file anew and keeps the damaged one", async () => {
    const directory = await closed();
    spoil(directory, "jobs_ready");
    const damaged = fs.readFileSync(path.join(directory, "queue.db"));
    const error = await refusal(directory, "queue_corrupt");
    expect(error.hint).toContain("clio-relay queue repair");
    expect(error.hint).toContain("there is no backup beside it");
    await expect(auditOffline(directory)).rejects.toMatchObject({ code: "queue_corrupt" });

    const { repaired, remaining } = await repairOffline(directory);
    expect(repaired).toMatchObject([{ check: "file", subject: "queue.db", detail: expect.stringContaining("queue.db.damaged-1") }]);
    expect(remaining).toEqual([]);
    expect(fs.readFileSync(path.join(directory, "queue.db.damaged-1")).equals(damaged)).toBe(true);
    expect(fs.statSync(path.join(directory, "queue.db")).mode & 0o777).toBe(0o600);
    const queue = open(directory);
    expect(await jobsOf(queue)).toBe(40);
    expect((await queue.store.audit({ deep: true })).findings).toEqual([]);
    await queue.close();
  });

  test("in an index, with a write-ahead log left: what the log holds is kept", async () => {
    const directory = await closed();
    await killedOwner(directory, 7);
    const file = path.join(directory, "queue.db");
    const log = fs.readFileSync(`${file}-wal`);
    // Where the file's copy of the page is covered by the log, the damage is not seen.
    const bytes = fs.readFileSync(file);
    const database = new Database(file, { readonly: true });
    const root = database
      .query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_schema WHERE name = 'progress_latest'")
      .get()!.rootpage;
    database.close();
    bytes.fill(0xee, (root - 1) * 4_096, root * 4_096);
    fs.writeFileSync(file, bytes);
    fs.writeFileSync(`${file}-wal`, log);
    await refusal(directory, "queue_corrupt");
    expect((await repairOffline(directory)).remaining).toEqual([]);
    expect(fs.existsSync(`${file}.damaged-1-wal`)).toBe(true);
    const queue = open(directory);
    expect(await jobsOf(queue)).toBe(47);
    await queue.close();
  });

  test("in a table: nothing is changed, and the hint says that the tables are beyond a repair", async () => {
    const directory = await closed();
    spoil(directory, "events");
    const before = fs.readFileSync(path.join(directory, "queue.db"));
    await expect(repairOffline(directory)).rejects.toMatchObject({
      code: "queue_corrupt",
      hint: expect.stringContaining("put a backup in its place"),
    });
    expect(fs.readFileSync(path.join(directory, "queue.db")).equals(before)).toBe(true);
    expect(fs.readdirSync(directory).filter((name) => name.includes("anew") || name.includes("damaged"))).toEqual([]);
  });

  test("with the pages of two tables in each other's place: repaired, or beyond it; nothing is a fault of ours", async () => {
    const directory = await closed();
    const file = path.join(directory, "queue.db");
    const whole = fs.readFileSync(file);
    const database = new Database(file, { readonly: true });
    const roots = database
      .query<{ rootpage: number }, []>("SELECT rootpage FROM sqlite_schema WHERE type = 'table'")
      .all()
      .map(({ rootpage }) => rootpage);
    database.close();
    const page = (number: number): Buffer => whole.subarray((number - 1) * 4_096, number * 4_096);
    const filled = roots.filter((root) => !page(root).equals(page(roots.at(-1)!)));
    const outcomes = new Set<string>();
    for (const [i, one] of filled.slice(0, 3).entries()) {
      for (const other of filled.slice(i + 1)) {
        const swapped = Buffer.from(whole);
        page(one).copy(swapped, (other - 1) * 4_096);
        page(other).copy(swapped, (one - 1) * 4_096);
        for (const name of fs.readdirSync(directory)) fs.rmSync(path.join(directory, name));
        fs.writeFileSync(file, swapped);
        const outcome = await repairOffline(directory).then(
          () => "repaired",
          (error: RelayError) => `${error.code}: ${error.hint}`,
        );
        outcomes.add(outcome);
        if (outcome !== "repaired") expect(fs.readFileSync(file).equals(swapped)).toBe(true);
      }
    }
    const codes = [...outcomes].map((outcome) => outcome.replace(/: .*/, ""));
    expect(codes.filter((code) => !["repaired", "queue_corrupt"].includes(code))).toEqual([]);
    expect([...outcomes].some((outcome) => outcome.includes("put a backup in its place"))).toBe(true);
  });

  test("the hint names the newest backup", async () => {
    const directory = await closed();
    for (const [name, day] of [
      ["queue.db.v1.bak", 1],
      ["queue.db.v2.bak", 2],
    ] as const) {
      const backup = path.join(directory, name);
      fs.copyFileSync(path.join(directory, "queue.db"), backup);
      fs.utimesSync(backup, new Date(Date.UTC(2030, 0, day)), new Date(Date.UTC(2030, 0, day)));
    }
    spoil(directory, "jobs_ready");
    const { hint } = await refusal(directory, "queue_corrupt");
    expect(hint).toContain(`a backup from 2030-01-02T00:00:00.000Z is ${path.join(directory, "queue.db.v2.bak")}`);
  });
});
