import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { JobSubmission } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { prepareAttempt, readStart, voidAttempt } from "../../../src/execution/attempt-dir.ts";
import { directSpawner } from "../../../src/execution/direct-spawner.ts";
import { jobEnvironment } from "../../../src/execution/environment.ts";
import { SpareShimLauncher } from "../../../src/execution/spare-pool.ts";
import { identify, isAlive, self } from "../../../src/lib/system/process-identity.ts";
import { systemClock, timestamp } from "../../../src/lib/waiting/clock.ts";
import { openQueue } from "../../../src/queue/sqlite/open.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

const CAPACITY = { concurrency: 5, control_query_concurrency: 1, kind_concurrency: {}, scheduler_jobs: 500 };

/** Do by hand what a worker does up to a step of starting an attempt, as if it had died right after it. */
async function diedAfter(worker: WorkerHarness, step: 1 | 2 | 3 | 4 | 5, line: string, retries = 0): Promise<string> {
  fs.mkdirSync(worker.coreDir, { recursive: true });
  const store = await openQueue(worker.coreDir, { clock: systemClock, activeJobsMax: 100, leaseSeconds: LIMITS.leaseSeconds });
  try {
    const submission = v.parse(JobSubmission, { cluster: "local", kind: "command", spec: { argv: ["/bin/sh", "-c", line], retries } });
    const { job } = await store.submit(submission, "workload");
    const now = timestamp(systemClock);
    const endpoint = { role: "worker", cluster: "local", process: self(), version: "test", capacity: CAPACITY } as const;
    const times = { registered_at: now, last_seen_at: now, stopped_at: null, lane_last_error: null };
    await store.registerEndpoint({ endpoint_id: "endpoint_dead", ...endpoint, ...times });
    await store.claim("endpoint_dead", CAPACITY); // 1
    const directory = worker.attemptDir(job.job_id);
    if (step >= 2) {
      const eventsDir = path.join(directory, "events");
      prepareAttempt(directory, {
        job_id: job.job_id,
        attempt: 1,
        cluster: "local",
        argv: ["/bin/sh", "-c", line],
        workdir: worker.directory,
        env: jobEnvironment({
          worker: process.env,
          spec: {},
          jobId: job.job_id,
          attempt: 1,
          cluster: "local",
          eventsDir,
          executableDir: null,
        }),
        login: false,
        env_setup: null,
        timeout_seconds: null,
        quota: { stream_bytes: 1e6, job_bytes: 1e6, used: { stdout: 0, stderr: 0 } },
        cancel_grace_seconds: 1,
      });
    }
    if (step >= 3) {
      const command = [process.execPath, path.resolve("src/main.ts")];
      const launcher = new SpareShimLauncher(directSpawner({ command, cgroupParent: null }), { spares: 0, spool: worker.spoolDir });
      await launcher.launch(directory);
    }
    if (step >= 4) await eventually(() => readStart(directory));
    if (step >= 5) await eventually(() => fs.existsSync(path.join(directory, "process.json")));
    return job.job_id;
  } finally {
    await store.close();
  }
}

describe("a worker that died while it started an attempt", () => {
  const counting = (file: string) => `echo started >> ${file}; sleep 0.3; echo done`;

  test.each([1, 2] as const)("after step %d: it never started, is voided and runs once", async (step) => {
    await using worker = new WorkerHarness();
    const file = path.join(worker.directory, "starts");
    const jobId = await diedAfter(worker, step, counting(file));
    await worker.start();
    const { job } = await worker.ended(jobId);
    expect(job).toMatchObject({ state: "succeeded", attempts: 2 });
    expect(fs.readFileSync(file, "utf8")).toBe("started\n");
    expect((await worker.client.attempts(jobId)).attempts.map((a) => a.state)).toEqual(["void", "ended"]);
    expect(historyFaults(await worker.events(jobId))).toEqual([]);
  });

  test("after step 3, before the shim claimed: whoever wins start.json, it runs once", async () => {
    await using worker = new WorkerHarness();
    const file = path.join(worker.directory, "starts");
    const jobId = await diedAfter(worker, 3, counting(file));
    await worker.start();
    const { job } = await worker.ended(jobId);
    expect(job.state).toBe("succeeded");
    expect(fs.readFileSync(file, "utf8")).toBe("started\n");
    expect(await worker.stdout(jobId)).toBe("done\n");
  });

  test.each([4, 5] as const)("after step %d: the attempt is adopted and goes on", async (step) => {
    await using worker = new WorkerHarness();
    const file = path.join(worker.directory, "starts");
    const jobId = await diedAfter(worker, step, counting(file));
    await worker.start();
    const { job } = await worker.ended(jobId);
    expect(job).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(fs.readFileSync(file, "utf8")).toBe("started\n");
    expect(historyFaults(await worker.events(jobId))).toEqual([]);
  });

  test("after it had won start.json, before the void was committed: voided once more, and run", async () => {
    await using worker = new WorkerHarness();
    const jobId = await diedAfter(worker, 2, "echo done");
    expect(voidAttempt(worker.attemptDir(jobId), "test")).toBe(true);
    await worker.start();
    expect((await worker.ended(jobId)).job).toMatchObject({ state: "succeeded", attempts: 2 });
  });
});

describe("SIGKILL of the worker", () => {
  test("in the middle of a job: same process, every byte, one end", async () => {
    await using worker = await new WorkerHarness().start();
    // It writes while no worker is there, and does not end before the next one looks after it.
    const gate = path.join(worker.directory, "gate");
    const lines = (from: number, to: number) => `i=${from}; while [ $i -lt ${to} ]; do echo line $i; i=$((i+1)); sleep 0.01; done`;
    const { job_id } = await worker.shell(`${lines(0, 150)}; until [ -e ${gate} ]; do sleep 0.05; done; ${lines(150, 200)}`);
    const before = await worker.running(job_id);
    await eventually(async () => (await worker.stdout(job_id)).includes("line 20\n"));
    await worker.kill();
    expect(isAlive(before.attempt!.process!)).toBe(true);
    await worker.start();
    await eventually(async () => (await worker.events(job_id)).some(({ event_type }) => event_type === "execution.adopted"));
    fs.writeFileSync(gate, "");
    const after = await worker.ended(job_id);
    expect(after.job).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(after.attempt!.process).toEqual(before.attempt!.process);
    expect(await worker.stdout(job_id)).toBe(Array.from({ length: 200 }, (_, i) => `line ${i}\n`).join(""));
    const events = await worker.events(job_id);
    expect(historyFaults(events)).toEqual([]);
    expect(events.filter((e) => e.event_type === "execution.adopted").length).toBe(1);
  });

  test("and the job ends before the next worker: it is settled from its exit record", async () => {
    await using worker = await new WorkerHarness().start();
    const gate = path.join(worker.directory, "gate");
    const { job_id } = await worker.shell(`until [ -e ${gate} ]; do sleep 0.05; done; echo late; exit 3`);
    await worker.running(job_id);
    await worker.kill();
    fs.writeFileSync(gate, "");
    await eventually(() => fs.existsSync(path.join(worker.attemptDir(job_id), "exit.json")));
    await worker.start();
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { exit_code: 3 } });
    expect(await worker.stdout(job_id)).toBe("late\n");
    expect((await worker.events(job_id)).map((e) => e.event_type)).toContain("execution.restart_reconciled");
  });

  test("with a cancel on record: the next worker carries it out", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("trap '' TERM; while :; do sleep 0.1; done");
    const { attempt } = await worker.running(job_id);
    await worker.client.cancel(job_id);
    await worker.kill();
    await worker.start();
    expect((await worker.ended(job_id)).job.state).toBe("canceled");
    expect(isAlive(attempt!.process!)).toBe(false);
  });
});

describe("draining", () => {
  test("leaves jobs running for the next worker, answers waits, and ends with 0", async () => {
    await using worker = await new WorkerHarness().start();
    const gate = path.join(worker.directory, "gate");
    const { job_id } = await worker.shell(`until [ -e ${gate} ]; do sleep 0.05; done; echo done`);
    const { attempt } = await worker.running(job_id);
    const wait = worker.client.wait(job_id, { timeout_seconds: 60 });
    // Connections are taken in the order in which they came: once this one is answered, the wait has arrived.
    await worker.client.job(job_id);
    expect(await worker.drain()).toBe(0);
    expect((await wait).observation.outcome).toBe("observation_unknown");
    expect(isAlive(attempt!.process!)).toBe(true);
    await worker.start();
    fs.writeFileSync(gate, "");
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 1 });
  });
});

describe("SIGKILL of the shim", () => {
  test("does not keep a worker from draining while what is left has its grace period", async () => {
    await using worker = await new WorkerHarness({ limits: { cancelGraceSeconds: 600 } }).start();
    const asked = path.join(worker.directory, "asked");
    const { job_id } = await worker.shell(`exec 2>/dev/null; trap ': > ${asked}' TERM; while :; do sleep 0.05; done`);
    const { attempt } = await worker.running(job_id);
    process.kill(attempt!.shim!.pid, "SIGKILL");
    await eventually(() => fs.existsSync(asked), { what: "TERM to the job" });
    expect(await worker.drain()).toBe(0);
    expect(isAlive(attempt!.process!)).toBe(true);
  });

  test("ends the job's processes; the outcome is unknown and nothing is run again", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("echo before; setsid sleep 600 & sleep 600");
    const { attempt } = await worker.running(job_id);
    await eventually(async () => (await worker.stdout(job_id)) === "before\n");
    process.kill(attempt!.shim!.pid, "SIGKILL");
    const { job, logs } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", attempts: 1, outcome: { reason: "outcome_unknown", residual: [] } });
    expect(isAlive(attempt!.process!)).toBe(false);
    expect(logs.find((log) => log.stream === "stdout")).toMatchObject({ size_bytes: 7, capture: { kept: 7, complete: false } });
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  /** A process with a session and an environment of its own, which nothing but its place below the shim ties to the job. */
  const daemon = (pidFile: string): string =>
    `env -i /bin/sh -c 'setsid sh -c "echo \\$\\$ > ${pidFile}.tmp; mv ${pidFile}.tmp ${pidFile}; exec sleep 600" &'`;
  const pidIn = (file: string): Promise<number> => eventually(() => fs.existsSync(file) && Number(fs.readFileSync(file, "utf8")));
  const hasCgroup = (dir: string): boolean =>
    (JSON.parse(fs.readFileSync(path.join(dir, "start.json"), "utf8")) as { cgroup: string | null }).cgroup !== null;

  test("ends what had left session and environment behind, where the worker had seen it below the shim", async () => {
    await using worker = await new WorkerHarness().start();
    const pidFile = path.join(worker.directory, "pid");
    const { job_id } = await worker.shell(
      `${daemon(pidFile)}; until [ -e ${pidFile} ]; do sleep 0.05; done; echo a; sleep 1.5; echo b; sleep 600`,
    );
    const { attempt } = await worker.running(job_id);
    const pid = await pidIn(pidFile);
    // The worker looks below the shim once a second, before it takes in output.
    const told = async () =>
      (await worker.events(job_id)).filter(({ event_type }) => event_type === "stdout.delta").at(-1)?.payload["next_offset"];
    await eventually(async () => (await told()) === 4);
    process.kill(attempt!.shim!.pid, "SIGKILL");
    const { job } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "outcome_unknown", residual: [] });
    expect(identify(pid)).toBeNull();
    if (!hasCgroup(worker.attemptDir(job_id))) expect(job.outcome!.message).toContain("what was found of it was ended (without a cgroup");
  });

  test("says what cannot be known, where nobody had seen it", async () => {
    await using worker = await new WorkerHarness().start();
    const pidFile = path.join(worker.directory, "pid");
    const release = path.join(worker.directory, "release");
    const { job_id } = await worker.shell(`until [ -e ${release} ]; do sleep 0.05; done; ${daemon(pidFile)}; sleep 600`);
    const { attempt } = await worker.running(job_id);
    await worker.kill();
    fs.writeFileSync(release, "");
    const pid = await pidIn(pidFile);
    process.kill(attempt!.shim!.pid, "SIGKILL");
    await worker.start();
    const { job } = await worker.ended(job_id);
    const missed = identify(pid) !== null;
    if (missed) process.kill(pid, "SIGKILL");
    expect(missed).toBe(!hasCgroup(worker.attemptDir(job_id)));
    if (missed) expect(job.outcome!.message).toContain("may be missed");
  });

  test("is tried again where retries ask for it", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("test -e seen && exit 0; touch seen; sleep 600", { retries: 1, workdir: worker.directory });
    const { attempt } = await worker.running(job_id);
    await eventually(() => fs.existsSync(path.join(worker.directory, "seen")));
    process.kill(attempt!.shim!.pid, "SIGKILL");
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 2 });
  });

  test("and of the worker: the next worker finds and ends what is left", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("setsid sleep 600 & sleep 600");
    const { attempt } = await worker.running(job_id);
    await worker.kill();
    process.kill(attempt!.shim!.pid, "SIGKILL");
    expect(isAlive(attempt!.process!)).toBe(true);
    await worker.start();
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
    expect(isAlive(attempt!.process!)).toBe(false);
  });
});

test("SIGKILL of the job's process is the job's failure, with the signal's name", async () => {
  await using worker = await new WorkerHarness().start();
  const { job_id } = await worker.submit({ argv: ["sleep", "600"] });
  const { attempt } = await worker.running(job_id);
  process.kill(attempt!.process!.pid, "SIGKILL");
  expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "signaled", signal: "SIGKILL" } });
});

test("shims that end before they claim: no hot loop, and the worker's status says so", async () => {
  await using worker = await new WorkerHarness({ command: ["/bin/false"] }).start();
  const { job_id } = await worker.shell("true");
  await eventually(async () => (await worker.client.workers()).workers[0]!.lane_last_error?.includes("before it claimed"));
  const first = (await worker.client.attempts(job_id)).total;
  await eventually(async () => (await worker.client.attempts(job_id)).total > first);
  // Between two tries lies a delay that doubles: a loop without it makes hundreds meanwhile.
  expect((await worker.client.attempts(job_id)).total).toBeLessThan(first + 10);
  await worker.client.cancel(job_id);
  expect((await worker.ended(job_id)).job.state).toBe("canceled");
});

describe("a second worker", () => {
  test("on the same directory is refused and told who owns it; the first goes on", async () => {
    await using worker = await new WorkerHarness().start();
    await using second = new WorkerHarness({}, worker.directory);
    const refused = second.spawn();
    expect(await refused.exited).not.toBe(0);
    expect(await eventually(() => second.messages.includes(String(worker.pid)))).toBe(true);
    const { job_id } = await worker.shell("echo still here");
    await worker.ended(job_id);
    expect(await worker.stdout(job_id)).toBe("still here\n");
  });
});

test("a record that cannot be read is put aside, and the lane goes on", async () => {
  await using worker = new WorkerHarness();
  const bad = await diedAfterSubmit(worker);
  await worker.start();
  const { job_id } = await worker.shell("echo after");
  await worker.ended(job_id);
  expect(await worker.stdout(job_id)).toBe("after\n");
  const { workers } = await worker.client.workers();
  expect(workers[0]).toMatchObject({ quarantined: 1 });
  expect((await worker.client.queue()).jobs.find((job) => job.job_id === bad)).toMatchObject({ state: "queued" });
});

/** Submit a job and spoil its record, as a fault of the disk or of another version would. */
async function diedAfterSubmit(worker: WorkerHarness): Promise<string> {
  fs.mkdirSync(worker.coreDir, { recursive: true });
  const store = await openQueue(worker.coreDir, { clock: systemClock, activeJobsMax: 100, leaseSeconds: LIMITS.leaseSeconds });
  const { job } = await store.submit(v.parse(JobSubmission, { cluster: "local", kind: "command", spec: { argv: ["true"] } }), "workload");
  await store.close();
  const { Database } = await import("bun:sqlite");
  const database = new Database(path.join(worker.coreDir, "queue.db"));
  database.run("UPDATE jobs SET spec = ? WHERE job_id = ?", ['{"argv": 7}', job.job_id]);
  database.close();
  return job.job_id;
}
