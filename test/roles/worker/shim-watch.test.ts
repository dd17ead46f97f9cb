import { afterEach, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type Identity, identify, processStat } from "../../../src/lib/system/process-identity.ts";
import type { WorkerContext } from "../../../src/roles/worker/context.ts";
import { Patience } from "../../../src/roles/worker/patience.ts";
import { ShimWatch } from "../../../src/roles/worker/shim-watch.ts";
import { fillInodes, smallFileSystems } from "../../execution/tmpfs.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

const temporary = temporaryDirectories();
const started: Bun.Subprocess[] = [];
afterEach(async () => {
  for (const each of started.splice(0)) {
    each.kill("SIGKILL");
    await each.exited;
  }
});

/** A process in the place of a shim, watched with a clock that the test moves. */
async function watched(argv: string[], directory = path.join(temporary(), "job_a", "attempt-1")) {
  const shim = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  started.push(shim);
  await eventually(() => processStat(shim.pid)?.state === "S", { what: "a shim that waits" });
  let now = 0;
  fs.mkdirSync(directory, { recursive: true });
  const context = { clock: { now: () => now, monotonic: () => now }, limits: { cancelGraceSeconds: 1 } } as unknown as WorkerContext;
  const patience = new Patience(new AbortController().signal, () => undefined);
  const watch = new ShimWatch(context, directory, patience, 1_000, 10_000);
  const claim = { shim: identify(shim.pid) as Identity, cgroup: null, process: null, startedAt: null, understood: true };
  /** Let time pass, with a look now and then, and tell what the last one found. */
  const after = async (ms: number, everyMs = 1_000) => {
    for (const end = now + ms; now < end; ) {
      now = Math.min(end, now + everyMs);
      await watch.end(claim);
    }
    return watch.end(claim);
  };
  return { shim, directory, claim, watch, after };
}

const lives = (shim: Bun.Subprocess): boolean => identify(shim.pid) !== null;

test("a shim with nothing to do but to record an end, which it does not, is given up in the end", async () => {
  const { shim, after } = await watched(["sleep", "600"]);
  expect(await after(0)).toBeNull();
  expect(await after(9_000)).toBeNull();
  expect(identify(shim.pid)).not.toBeNull();
  await after(2_000);
  await shim.exited;
  expect(shim.signalCode).toBe("SIGKILL");
  expect(await after(0)).toBe("lost");
});

test("one that is stopped, or has processes of the job below it, is not", async () => {
  const stopped = await watched(["sleep", "600"]);
  stopped.shim.kill("SIGSTOP");
  await eventually(() => processStat(stopped.shim.pid)?.state === "T");
  const busy = await watched(["sh", "-c", "sleep 600 & wait"]);
  await eventually(() => busy.after(1_001).then(() => busy.watch.descendants.length === 1));
  for (const { shim, after } of [stopped, busy]) {
    expect(await after(100_000)).toBeNull();
    expect(lives(shim)).toBe(true);
  }
  const [child] = busy.watch.descendants;
  process.kill(child!.pid, "SIGKILL");
});

test("one that was stopped has its whole time from when it may go on, and not for ever", async () => {
  const { shim, watch, after } = await watched(["sleep", "600"]);
  shim.kill("SIGSTOP");
  await eventually(() => processStat(shim.pid)?.state === "T");
  await after(100_000);
  expect(watch.obstacle).toContain("stopped");
  shim.kill("SIGCONT");
  await eventually(() => processStat(shim.pid)?.state === "S");
  await after(8_000);
  expect(lives(shim)).toBe(true);
  expect(watch.obstacle).toBeNull();
  await after(5_000);
  await shim.exited;
  expect(shim.signalCode).toBe("SIGKILL");
});

test("time in which nobody looked, as the whole machine was stopped, is not the shim's", async () => {
  const { shim, after } = await watched(["sleep", "600"]);
  await after(3_000);
  await after(600_000, 600_000);
  expect(lives(shim)).toBe(true);
  await after(10_000);
  await shim.exited;
  expect(shim.signalCode).toBe("SIGKILL");
});

describeWith("tmpfs", "a spool without room", () => {
  const smallFileSystem = smallFileSystems();

  /** A shim whose attempt lies where there is no room for another name. */
  async function withoutRoom() {
    const place = smallFileSystem("1m,nr_inodes=40");
    const seen = await watched(["sleep", "600"], path.join(place, "job_a", "attempt-1"));
    const fillers = fillInodes(place);
    return { ...seen, makeRoom: () => fillers.map((file) => fs.rmSync(file)) };
  }

  test("one that has no place for its record has its whole time from when there is one, and what is in its way is said", async () => {
    const { shim, watch, after, makeRoom } = await withoutRoom();
    await after(100_000);
    expect(lives(shim)).toBe(true);
    expect(watch.obstacle).toContain("ENOSPC");
    makeRoom();
    await after(8_000);
    expect(lives(shim)).toBe(true);
    expect(watch.obstacle).toBeNull();
    await after(5_000);
    await shim.exited;
    expect(shim.signalCode).toBe("SIGKILL");
  });

  test("a cancel of a job that has ended waits for that place, too: killing would lose how it ended, and free nothing", async () => {
    const { shim, claim, watch, after, makeRoom } = await withoutRoom();
    // TERM is what a real shim takes for a request.
    const deaf = { ...claim, shim: { ...claim.shim, start_time: claim.shim.start_time + 1 } };
    watch.sendCancel(deaf, false);
    await after(200_000);
    expect(lives(shim)).toBe(true);
    makeRoom();
    await after(5_000);
    expect(lives(shim)).toBe(true);
  });
});

test("an end that is recorded counts, whatever the shim does", async () => {
  const { directory, after } = await watched(["sleep", "600"]);
  const stream = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: null };
  const outcome = { reason: "completed", exit_code: 0, signal: null, message: "", residual: [] };
  const record = { record_version: 1, outcome, started_at: null, ended_at: "2026-01-01T00:00:00.000Z", usage: null, leftover: 0 };
  fs.writeFileSync(path.join(directory, "exit.json"), JSON.stringify({ ...record, streams: { stdout: stream, stderr: stream } }));
  expect(await after(0)).toMatchObject({ outcome: { reason: "completed" } });
});
