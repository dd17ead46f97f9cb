import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { JobStatus } from "../../../src/domain/views.ts";
import { RealJarvis } from "../../rigs/jarvis/real.ts";
import { Slurm } from "../../rigs/slurm.ts";
import { describeWith } from "../../runner/components.ts";
import { removeTree } from "../../runner/remove.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults } from "./harness.ts";
import { JarvisRuns } from "./jarvis-runs.ts";
import type { Death } from "./mortal.ts";

const pipeline = (name: string, steps = 2, rc = 0): string =>
  `name: ${name}\npkgs:\n  - pkg_type: demo.counter\n    pkg_name: c1\n    steps: ${steps}\n    delay: 0.2\n    rc: ${rc}\n` +
  `scheduler:\n  name: slurm\n  job_name: ${name}\n  nodes: 1\n  ntasks: 1\n  time: "00:05:00"\n`;

describeWith(["slurm", "jarvis"], "a pipeline that JARVIS-CD submits to SLURM", () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-jarvis-slurm-"));
  let slurm: Slurm;
  let runs: JarvisRuns;
  let shared: string;
  /** One more worker. */
  let runsWith: (more?: Record<string, unknown>, directory?: string) => JarvisRuns;

  beforeAll(async () => {
    slurm = await Slurm.start();
    const jarvis = new RealJarvis(directory);
    const environment = { ...slurm.variables, PATH: `${process.env["PATH"]}:${slurm.variables["PATH"]}`, ...jarvis.environment };
    shared = jarvis.shared;
    runsWith = (more, place) =>
      new JarvisRuns({ program: jarvis.program, environment }, { scheduling: { choice: "slurm", times: { lag: 2_000 } }, ...more }, place);
    runs = runsWith();
    await runs.worker.start();
  });
  afterAll(async () => {
    await runs?.worker[Symbol.asyncDispose]();
    await slurm?.[Symbol.asyncDispose]();
    removeTree(directory);
  });

  const inSlurm = (command: string, ...args: string[]): string =>
    spawnSync(command, args, { encoding: "utf8", env: { ...process.env, ...slurm.variables } }).stdout;
  const marked = (jobId: string): string[] =>
    inSlurm("squeue", "-h", "-t", "all", "-o", "%j")
      .split("\n")
      .filter((name) => name.includes(jobId.replace("job_", "")));
  const nativeOf = async (jobId: string): Promise<string> => {
    const events = await runs.until(jobId, "scheduler.job_detected");
    return String(events.find(({ event_type }) => event_type === "scheduler.job_detected")!.payload["scheduler_job_id"]);
  };
  const ended = (jobId: string): Promise<JobStatus> => runs.worker.ended(jobId);

  test("is followed to its end, with its progress and its log", async () => {
    const job = await runs.run(pipeline("well"));
    expect(job.lane).toBe("scheduler");
    const status = await ended(job.job_id);
    expect(status.job.outcome).toMatchObject({ reason: "completed", exit_code: 0 });
    expect(status.progress.map(({ label, current }) => [label, current])).toEqual([["c1", 2]]);
    const log = await runs.worker.stdout(job.job_id);
    expect(log).toContain("Loaded pipeline: well");
    expect(await runs.artifactText(job.job_id, "stdout.log")).toBe(log);
    expect(status.logs.find(({ stream }) => stream === "stdout")).toMatchObject({ size_bytes: log.length, capture: { complete: true } });
    const record = JSON.parse(await runs.artifactText(job.job_id, "jarvis-record.json"));
    expect(record).toMatchObject({ mode: "scheduler", state: "completed", scheduler_native_id: await nativeOf(job.job_id) });
    expect(await runs.artifactText(job.job_id, "pipeline.yaml")).toContain("no_requeue: true\n");
    expect(await runs.artifactText(job.job_id, "pipeline.yaml")).toContain(`job_name: "well.clio-${job.job_id.replace("job_", "")}-1"`);
    expect(marked(job.job_id)).toHaveLength(1);
  });

  test("shows its output, its packages and JARVIS' state while it runs; killed workers miss and double nothing of it", async () => {
    const go = path.join(directory, "go");
    const text = pipeline("live").replace("    steps: 2\n", `    steps: 3\n    wait_for: ${go}\n`);
    const job = await runs.run(text);
    await runs.until(job.job_id, "scheduler.job_running");
    const shown = (what: string) =>
      eventually(async () => (await runs.worker.stdout(job.job_id)).includes(what), { what: `${what} in the log` });
    await shown("STEP 1 of 3");
    const { terminal, jarvis } = await eventually(
      async () => {
        const status = await runs.worker.client.status(job.job_id);
        return status.jarvis?.said?.state === "running" && status;
      },
      { what: "JARVIS' word on the run" },
    );
    expect(terminal).toBe(false);
    expect(jarvis).toMatchObject({ said: { pipeline_id: "live", mode: "scheduler", scheduler_native_id: await nativeOf(job.job_id) } });
    await runs.worker.kill();
    await runs.worker.start();
    fs.writeFileSync(go, "");
    const over = await ended(job.job_id);
    expect(over.job.outcome).toMatchObject({ reason: "completed" });
    // That of the run, and not that of what has submitted it.
    const { start_time, end_time } = over.scheduler![0]!.status!;
    expect(Date.parse(end_time!)).toBeGreaterThanOrEqual(Date.parse(start_time!));
    expect(over.attempt!.ended_at).toBe(new Date(end_time!).toISOString());
    expect(over.jarvis!.said).toMatchObject({ pipeline_id: "live", mode: "scheduler", state: "completed" });
    const log = await runs.worker.stdout(job.job_id);
    for (const step of [1, 2, 3]) expect(log.split(`STEP ${step} of 3`)).toHaveLength(2);
    expect(historyFaults(await runs.worker.events(job.job_id))).toEqual([]);
    const { tasks } = await runs.worker.client.tasks(job.job_id, { limit: 10 });
    const task = tasks.find(({ name }) => name === "package c1")!;
    const { events } = await runs.worker.client.taskEvents(task.task_id, { limit: 10 });
    expect(events.map(({ status }) => status)).toEqual(["planned", "running", "succeeded"]);
    expect(marked(job.job_id)).toHaveLength(1);
  });

  test("runs once, however often the worker is killed on the way", async () => {
    const place = path.join(directory, "dying");
    const text = pipeline("often");
    const submit = ({ worker }: JarvisRuns) =>
      worker.client.submit({ cluster: "local", kind: "jarvis", spec: { pipeline_yaml: text }, idempotency_key: "often" });
    const deaths: Death[] = [
      { when: "after", call: "launch" },
      { when: "before", call: "intendSubmission" },
      { when: "after", call: "intendSubmission" },
      { when: "before", call: "recordSubmission" },
      { when: "after", call: "recordSubmission" },
      { when: "before", call: "settle" },
    ];
    for (const death of deaths) {
      const dying = runsWith({ death }, place);
      const child = dying.worker.spawn();
      const gone = () => child.exitCode !== null || child.signalCode !== null;
      await eventually(async () => gone() || (await submit(dying)), { what: "a worker to submit to" });
      await eventually(gone, { what: `death ${death.when} ${death.call}` });
      expect(child.signalCode).toBe("SIGKILL");
    }
    const last = runsWith({}, place);
    await using worker = await last.worker.start();
    const { job_id, existing } = await submit(last);
    expect(existing).toBe(true);
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "succeeded", attempts: 1, outcome: { reason: "completed" } });
    expect(marked(job_id)).toHaveLength(1);
    expect(fs.readdirSync(path.join(shared, "often", "executions")).filter((name) => name.startsWith("jarvis_"))).toHaveLength(1);
    expect((await worker.stdout(job_id)).split("STEP 1 of 2")).toHaveLength(2);
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  test("that is canceled at SLURM is canceled, whatever JARVIS says of it; a worker that comes meanwhile goes on following it", async () => {
    const job = await runs.run(pipeline("away", 600));
    const native = await nativeOf(job.job_id);
    await runs.until(job.job_id, "scheduler.job_running");
    await runs.worker.kill();
    await runs.worker.start();
    await runs.until(job.job_id, "jarvis.execution_recovery_attached");
    inSlurm("scancel", native);
    const status = await ended(job.job_id);
    expect(status.job.outcome!.reason).toBe("canceled");
    expect(status.job.outcome!.message).toContain("CANCELLED");
    expect(marked(job.job_id)).toHaveLength(1);
  });

  test("is left to go on by a cancel, and ended where that is asked for", async () => {
    const left = await runs.run(pipeline("left", 600));
    const other = await nativeOf(left.job_id);
    await runs.worker.client.cancel(left.job_id);
    const retained = await ended(left.job_id);
    expect(retained.job.outcome).toMatchObject({ reason: "canceled" });
    expect(retained.logs.map(({ capture }) => capture?.complete)).toEqual([false, false]);
    expect(inSlurm("squeue", "-h", "-j", other, "-o", "%T").trim()).toMatch(/^(RUNNING|PENDING)$/);
    inSlurm("scancel", other);
    const job = await runs.run(pipeline("stopped", 600));
    const native = await nativeOf(job.job_id);
    await runs.worker.client.cancel(job.job_id, { cancel_scheduler_job: true });
    expect((await ended(job.job_id)).job.outcome).toMatchObject({ reason: "canceled" });
    await eventually(() => !/RUNNING|PENDING/.test(inSlurm("squeue", "-h", "-j", native, "-o", "%T")));
  });

  test("fails with what SLURM and JARVIS say, also where JARVIS never began there", async () => {
    const job = await runs.run(pipeline("ill", 1, 9));
    const status = await ended(job.job_id);
    expect(status.job.outcome!.reason).toBe("engine_failed");
    expect(status.job.outcome!.message).toContain("c1");
    const lost = await runs.submit({ pipeline_yaml: pipeline("lost"), env: { PYTHONPATH: "/nowhere" } });
    expect((await ended(lost.job_id)).job.outcome!.reason).toBe("engine_failed");
  });
});
