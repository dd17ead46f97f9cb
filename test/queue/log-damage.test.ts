import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isRelayError, type RelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { openQueue } from "../../src/queue/sqlite/open.ts";
import { auditOffline, repairOffline } from "../../src/roles/worker/offline.ts";
import { command } from "../contract/queue-store/scene.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { ownQueue } from "./kill-rounds.ts";
import { killedOwner } from "./killed-owner.ts";

const makeDirectory = temporaryDirectories();
const JOBS = 12;
const FRAME = 24 + 4_096;

/** A queue whose owner was killed when nothing of its log had been copied to the file yet. */
async function killed(jobs = JOBS): Promise<{ directory: string; log: string }> {
  const directory = makeDirectory();
  await killedOwner(directory, jobs);
  return { directory, log: path.join(directory, "queue.db-wal") };
}

function refusal(directory: string): RelayError {
  try {
    void ownQueue(directory).close();
  } catch (error) {
    if (isRelayError(error)) return error;
    throw error;
  }
  throw new Error("it was opened");
}

/** What lies in a directory: names, kinds, and the bytes of files. The lock and the owner's record are not the queue's contents. */
const contents = (directory: string): Record<string, string> =>
  Object.fromEntries(
    fs
      .readdirSync(directory, { withFileTypes: true })
      .filter(({ name }) => name !== "owner.json" && name !== "queue.lock")
      .map((entry) => [entry.name, entry.isFile() ? fs.readFileSync(path.join(directory, entry.name)).toString("base64") : "no file"]),
  );

function flip(file: string, at: number): void {
  const bytes = fs.readFileSync(file);
  bytes[at]! ^= 1;
  fs.writeFileSync(file, bytes);
}

function instead(file: string, make: () => void): void {
  fs.rmSync(file);
  make();
}

function makePipe(file: string): void {
  expect(Bun.spawnSync(["mkfifo", file]).exitCode).toBe(0);
}

const size = (file: string): number => fs.statSync(file).size;

describe("a write-ahead log that does not hold all that was committed is refused, until a repair goes on without it", () => {
  const damages: readonly (readonly [string, string, (log: string) => void])[] = [
    ["gone", "is gone", (log) => fs.rmSync(log)],
    ["emptied", "is empty", (log) => fs.truncateSync(log, 0)],
    ["cut within its header", "ends in its header", (log) => fs.truncateSync(log, 31)],
    ["cut behind its header", "ends after 0 of", (log) => fs.truncateSync(log, 32)],
    ["cut in the middle", "ends after", (log) => fs.truncateSync(log, Math.floor(size(log) / 2))],
    ["cut by a byte", "ends after", (log) => fs.truncateSync(log, size(log) - 1)],
    ["with a bit of its header changed", "has a damaged header", (log) => flip(log, 20)],
    ["of another kind", "has a damaged header", (log) => flip(log, 0)],
    ["with a bit changed in a page", "is damaged in frame 3 of", (log) => flip(log, 10_000)],
    ["with a bit changed in a frame's checksum", "is damaged in frame 1 of", (log) => flip(log, 32 + 16)],
    ["with a bit changed in the last frame", "is damaged in frame", (log) => flip(log, size(log) - 100)],
    ["with the salt of the last frame changed", "is damaged in frame", (log) => flip(log, size(log) - FRAME + 8)],
    ["replaced by text", "has a damaged header", (log) => fs.writeFileSync(log, "not a log\n".repeat(10_000))],
    ["replaced by a pipe", "is a named pipe", (log) => instead(log, () => makePipe(log))],
    ["replaced by a directory", "is a directory", (log) => instead(log, () => fs.mkdirSync(log))],
    ["replaced by a link to nothing", "is a symbolic link", (log) => instead(log, () => fs.symlinkSync("nowhere", log))],
    ["replaced by a link to /dev/null", "is a symbolic link", (log) => instead(log, () => fs.symlinkSync("/dev/null", log))],
  ];
  for (const [name, what, damage] of damages) {
    test(name, async () => {
      const { directory, log } = await killed();
      damage(log);
      const before = contents(directory);
      for (let again = 0; again < 2; again++) {
        const error = refusal(directory);
        expect([error.code, error.message]).toEqual(["queue_incomplete", expect.stringContaining(`${log} ${what}`)]);
        expect(error.data).toMatchObject({ missing: "queue.db-wal", complete_until: expect.stringMatching(/Z$/) });
        expect(contents(directory)).toEqual(before);
      }
      await expect(auditOffline(directory)).rejects.toMatchObject({ code: "queue_incomplete" });

      const { repaired, remaining } = await repairOffline(directory);
      expect(repaired[0]).toMatchObject({ check: "file", subject: "queue.db-wal" });
      expect(remaining).toEqual([]);
      if (before["queue.db-wal"] !== undefined) expect(contents(directory)["queue.db-wal.damaged-1"]).toBe(before["queue.db-wal"]);
      await ownQueue(directory).close();
    });
  }

  test("replaced by the log of another queue, or by an older copy of its own", async () => {
    const [one, other] = [await killed(), await killed()];
    const log = fs.readFileSync(one.log);
    fs.copyFileSync(other.log, one.log);
    expect(refusal(one.directory)).toMatchObject({ code: "queue_incomplete", message: expect.stringContaining("is another one") });

    fs.writeFileSync(one.log, log);
    await killedOwner(one.directory, 5);
    const later = fs.readFileSync(one.log);
    fs.writeFileSync(one.log, log);
    expect(refusal(one.directory)).toMatchObject({ code: "queue_incomplete", message: expect.stringContaining("ends after") });
    fs.writeFileSync(one.log, later);
    const queue = ownQueue(one.directory);
    expect((await queue.store.stats()).active).toBe(JOBS + 5);
    await queue.close();
  });

  test("what a repair keeps is what was committed before the damage", async () => {
    const { directory, log } = await killed();
    flip(log, size(log) - 100);
    await repairOffline(directory);
    const queue = ownQueue(directory);
    const { active } = await queue.store.stats();
    expect(active).toBe(JOBS - 1);
    await queue.close();
  });
});

describe("a log is not asked for more than was committed", () => {
  test("frames behind the last commit may be anything", async () => {
    for (const tail of [Buffer.alloc(10), Buffer.alloc(3 * FRAME, 0xee)]) {
      const { directory, log } = await killed();
      fs.appendFileSync(log, tail);
      fs.appendFileSync(log, fs.readFileSync(log).subarray(32, 32 + 2 * FRAME));
      const queue = ownQueue(directory);
      expect((await queue.store.stats()).active).toBe(JOBS);
      await queue.close();
    }
  });

  test("one that was begun anew counts, because the file has what it held", async () => {
    const { directory, log } = await killed(400);
    const mark = JSON.parse(fs.readFileSync(path.join(directory, "committed.json"), "utf8"));
    // Shorter than the log was: SQLite began anew at its start.
    expect(mark.frames).toBeLessThan((size(log) - 32) / FRAME);
    const queue = ownQueue(directory);
    expect((await queue.store.stats()).active).toBe(400);
    await queue.close();
  });

  test("an older mark, as a loss of power may leave it, asks for what was flushed when it was written", async () => {
    const { directory } = await killed();
    const mark = path.join(directory, "committed.json");
    const older = fs.readFileSync(mark);
    await killedOwner(directory, 400);
    fs.writeFileSync(mark, older);
    const queue = ownQueue(directory);
    expect((await queue.store.stats()).active).toBe(JOBS + 400);
    await queue.close();
  });

  test("without a commit since it was made it may be gone or empty", async () => {
    const directory = makeDirectory();
    await ownQueue(directory).close();
    for (const damage of [(log: string) => fs.truncateSync(log), (log: string) => fs.rmSync(log)]) {
      await killedOwner(directory, 0);
      damage(path.join(directory, "queue.db-wal"));
      const queue = ownQueue(directory);
      expect((await queue.store.stats()).active).toBe(0);
      await queue.close();
    }
  });
});

describe("the mark", () => {
  test.each<[string, (mark: string) => void]>([
    ["gone", (mark) => fs.rmSync(mark)],
    ["empty", (mark) => fs.truncateSync(mark)],
    ["text", (mark) => fs.writeFileSync(mark, "{}")],
    ["too long", (mark) => fs.appendFileSync(mark, " ".repeat(300))],
    ["a pipe", (mark) => instead(mark, () => makePipe(mark))],
    ["a directory", (mark) => instead(mark, () => fs.mkdirSync(mark))],
  ])("that is %s after a kill is refused, until a repair goes on without it", async (_name, damage) => {
    const { directory } = await killed();
    damage(path.join(directory, "committed.json"));
    expect(refusal(directory)).toMatchObject({ code: "queue_incomplete", data: { missing: "committed.json" } });
    const { repaired } = await repairOffline(directory);
    expect(repaired[0]).toMatchObject({ check: "file", subject: "committed.json" });
    const queue = ownQueue(directory);
    expect((await queue.store.stats()).active).toBe(JOBS);
    await queue.close();
  });

  test("says after each commit how far the log reaches, and at the end that it is closed", async () => {
    const directory = makeDirectory();
    const mark = () => JSON.parse(fs.readFileSync(path.join(directory, "committed.json"), "utf8"));
    const store = openQueue(directory, { clock: systemClock, activeJobsMax: 10, leaseSeconds: 120 });
    const log = path.join(directory, "queue.db-wal");
    for (let i = 0; i < 3; i++) {
      await store.submit(command(), "workload");
      await new Promise((done) => setImmediate(done));
      const frames = (size(log) - 32) / FRAME;
      const last = fs.readFileSync(log).subarray(-FRAME).subarray(0, 24).toString("hex");
      expect(mark()).toEqual({ record_version: 1, open: true, frames, last_frame: last });
    }
    await store.close();
    expect(mark()).toEqual({ record_version: 1, open: false, frames: 0, last_frame: null });
  });

  test("of a queue that was closed in order tells that there was a file", async () => {
    const { directory } = await killed();
    await ownQueue(directory).close();
    const file = path.join(directory, "queue.db");
    fs.rmSync(file);
    for (const open of [async () => refusal(directory), () => repairOffline(directory).catch((error: unknown) => error)]) {
      expect(await open()).toMatchObject({ code: "queue_incomplete", data: { missing: "queue.db" } });
    }
    expect(fs.existsSync(file)).toBe(false);
  });
});
