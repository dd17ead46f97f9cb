import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { JobSubmission } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { ShimLog } from "../../../src/execution/shim/shim-log.ts";
import { self } from "../../../src/lib/system/process-identity.ts";
import { systemClock, timestamp } from "../../../src/lib/waiting/clock.ts";
import { openQueue } from "../../../src/queue/sqlite/open.ts";
import { SlowStart } from "../../../src/roles/worker/slow-start.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

const temporary = temporaryDirectories();
const childrenOf = (pid: number): string[] => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);

const CAPACITY = { concurrency: 5, control_query_concurrency: 1, kind_concurrency: {}, scheduler_jobs: 500 };

/** A queue with one job, whose attempts so far were all void. */
async function voidedBefore(worker: WorkerHarness, times: number): Promise<string> {
  fs.mkdirSync(worker.coreDir, { recursive: true });
  const store = await openQueue(worker.coreDir, { clock: systemClock, activeJobsMax: 100, leaseSeconds: LIMITS.leaseSeconds });
  try {
    const { job } = await store.submit(v.parse(JobSubmission, { cluster: "local", kind: "command", spec: { argv: ["true"] } }), "workload");
    const now = timestamp(systemClock);
    const endpoint = { role: "worker", cluster: "local", process: self(), version: "test", capacity: CAPACITY } as const;
    const times_ = { registered_at: now, last_seen_at: now, stopped_at: null, lane_last_error: null };
    await store.registerEndpoint({ endpoint_id: "endpoint_dead", ...endpoint, ...times_ });
    for (let attempt = 1; attempt <= times; attempt++) {
      await store.claim("endpoint_dead", CAPACITY);
      await store.voidAttempt({ job_id: job.job_id, attempt }, "a test");
    }
    return job.job_id;
  } finally {
    await store.close();
  }
}

test("a launch that fails every time ends the job after so many attempts in a row", async () => {
  await using worker = new WorkerHarness({ command: ["/bin/false"] });
  const jobId = await voidedBefore(worker, LIMITS.startTries - 2);
  await worker.start();
  const { job } = await worker.ended(jobId);
  expect(job).toMatchObject({ state: "failed", attempts: LIMITS.startTries, outcome: { reason: "spawn_failed" } });
  expect(job.outcome!.message).toContain(`${LIMITS.startTries} times in a row: the shim ended before it claimed`);
  expect(historyFaults(await worker.events(jobId))).toEqual([]);
});

test("a command whose record is too long is refused at once, and nothing is tried again", async () => {
  // Variables of the worker that every job gets; the submission itself is within its bound.
  const large = ["LC_A", "LC_B", "LC_C", "LC_D"].map((name) => `${name}=${"x".repeat(100_000)}`);
  await using worker = await new WorkerHarness({}, undefined, ["/usr/bin/env", ...large]).start();
  const env = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`PADDING_${i}`, "y".repeat(100_000)]));
  const { job_id } = await worker.submit({ argv: ["true"], env });
  const { job } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "failed", attempts: 1, outcome: { reason: "spawn_failed" } });
  expect(job.outcome!.message).toContain("bytes to write down");
  expect((await worker.client.workers()).workers[0]!.active_leases_by_kind).toEqual({});
});

test("an attempt whose directory cannot be made ends as not started, after a few tries", async () => {
  await using worker = await new WorkerHarness().start();
  const line = 'cd "$(dirname "$CLIO_RELAY_EVENTS")/.." && job="$PWD" && rm -rf "$job" && : > "$job"';
  const { job_id } = await worker.shell(line, { retries: 1 });
  const { job } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "failed", attempts: 2, outcome: { reason: "spawn_failed" } });
  const { attempts } = await worker.client.attempts(job_id);
  expect(attempts.map(({ outcome }) => outcome?.reason)).toEqual(["outcome_unknown", "spawn_failed"]);
  const after = await worker.shell("echo after");
  expect((await worker.ended(after.job_id)).job.state).toBe("succeeded");
});

test("a shim that has not claimed its attempt when that is taken back is ended: it may hang", async () => {
  await using worker = new WorkerHarness({ command: ["/bin/sh", "-c", "exec sleep 600", "a-shim-that-hangs"] });
  await worker.start();
  const { job_id } = await worker.shell("true");
  const hanging = () => childrenOf(worker.pid);
  await eventually(() => hanging().length > 0, { what: "the shim" });
  await eventually(() => fs.existsSync(worker.attemptDir(job_id)), { what: "its attempt" });
  await worker.client.cancel(job_id);
  expect((await worker.ended(job_id)).job.state).toBe("canceled");
  await eventually(() => hanging().length === 0, { what: "its end" });
  expect(await worker.drain()).toBe(0);
});

test("a job that waits since no shim can be started says so", async () => {
  await using worker = new WorkerHarness({ command: ["/no/such/relay"] });
  await worker.start();
  const { job_id } = await worker.shell("true");
  const obstacle = await eventually(async () => {
    const { job, obstacle: found } = await worker.client.status(job_id);
    return job.state === "queued" && found;
  });
  expect(obstacle).toContain("no shim could be started: ENOENT");
  await worker.client.cancel(job_id);
  expect((await worker.client.status(job_id)).obstacle).toBeNull();
  expect(await worker.drain()).toBe(0);
});

test("while the machine has no process left for a shim, jobs wait, however often that is tried; one can be canceled meanwhile", async () => {
  const shortage = path.join(temporary(), "no more processes");
  fs.writeFileSync(shortage, "");
  await using worker = new WorkerHarness({ shortage });
  const jobId = await voidedBefore(worker, LIMITS.startTries - 1);
  await worker.start();
  const other = await worker.shell("echo other");
  for (const id of [jobId, other.job_id]) {
    const { job, obstacle } = await eventually(async () => {
      const status = await worker.client.status(id);
      return status.obstacle !== null && status;
    });
    expect([job.state, obstacle]).toEqual(["leased", "no shim could be started: EAGAIN: no more processes"]);
  }
  const failures = () => worker.messages.split("no shim could be started: EAGAIN").length - 1;
  await eventually(() => failures() >= 6, { what: "several tries" });
  await worker.client.cancel(other.job_id);
  expect((await worker.ended(other.job_id)).job).toMatchObject({ state: "canceled", attempts: 1 });

  fs.rmSync(shortage);
  const { job, obstacle } = await worker.ended(jobId);
  expect([job.state, job.attempts, obstacle]).toEqual(["succeeded", LIMITS.startTries, null]);
  for (const id of [jobId, other.job_id]) expect(historyFaults(await worker.events(id))).toEqual([]);
  expect((await worker.events(jobId)).filter(({ event_type }) => event_type === "execution.delayed")).toHaveLength(1);
});

test("what a shim says while it cannot start the command is passed on after a while", () => {
  let now = 0;
  const directory = path.join(temporary(), "job_a", "attempt-1");
  fs.mkdirSync(directory, { recursive: true });
  const slow = new SlowStart({ now: () => now, monotonic: () => now }, directory);
  const log = new ShimLog(directory, systemClock);
  log.note("not a subreaper");
  log.note("not started, trying again: EAGAIN: resource temporarily unavailable");
  expect(slow.obstacle).toBeNull();
  now = 2_500;
  expect(slow.obstacle).toBe(
    "no start of the command is known yet; its shim says: not started, trying again: EAGAIN: resource temporarily unavailable",
  );
  fs.rmSync(path.join(directory, "shim.log"));
  expect(slow.obstacle).toBeNull();
});
