import { afterEach, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type Identity, identify, processStat } from "../../../src/lib/process-identity.ts";
import type { WorkerContext } from "../../../src/roles/worker/context.ts";
import { Patience } from "../../../src/roles/worker/patience.ts";
import { ShimWatch } from "../../../src/roles/worker/shim-watch.ts";
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
async function watched(argv: string[]) {
  const shim = Bun.spawn(argv, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  started.push(shim);
  await eventually(() => processStat(shim.pid)?.state === "S", { what: "a shim that waits" });
  let now = 0;
  const directory = path.join(temporary(), "job_a", "attempt-1");
  fs.mkdirSync(directory, { recursive: true });
  const context = { clock: { now: () => now, monotonic: () => now }, limits: { cancelGraceSeconds: 1 } } as unknown as WorkerContext;
  const patience = new Patience(new AbortController().signal, () => undefined);
  const watch = new ShimWatch(context, directory, patience, 1_000, 10_000);
  const claim = { shim: identify(shim.pid) as Identity, cgroup: null, process: null, startedAt: null, understood: true };
  const after = (ms: number) => {
    now += ms;
    return watch.end(claim);
  };
  return { shim, directory, watch, after };
}

test("a shim with nothing to do but to record an end, which it does not, is given up in the end", async () => {
  const { shim, after } = await watched(["sleep", "600"]);
  expect(await after(0)).toBeNull();
  expect(await after(9_000)).toBeNull();
  expect(identify(shim.pid)).not.toBeNull();
  expect(await after(2_000)).toBeNull();
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
    for (let i = 0; i < 5; i++) expect(await after(20_000)).toBeNull();
    expect(identify(shim.pid)).not.toBeNull();
  }
  const [child] = busy.watch.descendants;
  process.kill(child!.pid, "SIGKILL");
});

test("an end that is recorded counts, whatever the shim does", async () => {
  const { directory, after } = await watched(["sleep", "600"]);
  const stream = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: null };
  const outcome = { reason: "completed", exit_code: 0, signal: null, message: "", residual: [] };
  const record = { record_version: 1, outcome, started_at: null, ended_at: "2026-01-01T00:00:00.000Z", usage: null, leftover: 0 };
  fs.writeFileSync(path.join(directory, "exit.json"), JSON.stringify({ ...record, streams: { stdout: stream, stderr: stream } }));
  expect(await after(0)).toMatchObject({ outcome: { reason: "completed" } });
});
