import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { GridEngine } from "../../../rigs/gridengine.ts";
import { describeWith } from "../../../runner/components.ts";
import { removeTree } from "../../../runner/remove.ts";
import { eventually } from "../../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "../harness.ts";
import { REAL_TIMES } from "./site.ts";

describeWith("gridengine", "on real Grid Engine", () => {
  let engine: GridEngine;
  let directory: string;
  let worker: WorkerHarness;

  beforeAll(async () => {
    directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-sge-"));
    engine = await GridEngine.start();
    const scheduling = { choice: "gridengine", faster: 20, times: REAL_TIMES };
    const variables = Object.entries(engine.variables).map(([name, value]) => `${name}=${value}`);
    worker = await new WorkerHarness({ scheduling }, directory, ["env", ...variables]).start();
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await engine?.[Symbol.asyncDispose]();
    removeTree(directory);
  });

  const submit = (line: string, scheduler: Record<string, unknown> = {}) =>
    worker.submit({ argv: ["/bin/sh", "-c", line], workdir: directory, scheduler });
  const event = (jobId: string, type: string) =>
    eventually(async () => (await worker.events(jobId)).find(({ event_type }) => event_type === type), { what: type });
  const output = (jobId: string, text: string) =>
    eventually(async () => (await worker.stdout(jobId).catch(() => "")) === text, { what: JSON.stringify(text) });

  test("a job runs in its allocation, is followed while it does, and ends with its code", async () => {
    const { job_id } = await submit("echo $NSLOTS; until [ -e go ]; do sleep 0.05; done; exit 3", {
      tasks: 2,
      parallel_environment: "smp",
    });
    await output(job_id, "2\n");
    const { payload } = await event(job_id, "scheduler.job_detected");
    fs.writeFileSync(path.join(directory, "go"), "");
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
    const done = await event(job_id, "scheduler.job_completed");
    expect(done.payload).toMatchObject({ scheduler: "gridengine", scheduler_job_id: payload?.["scheduler_job_id"], phase: "failed" });
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  test("a cancel ends a running job in order, though Grid Engine sends it no TERM, and a waiting one before it starts", async () => {
    const running = await submit("trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.05; done");
    const waiting = await submit("echo ran", { options: ["-h"] });
    await output(running.job_id, "up\n");
    await event(waiting.job_id, "scheduler.job_pending");
    for (const { job_id } of [running, waiting]) await worker.client.cancel(job_id, { cancel_scheduler_job: true });
    expect((await worker.ended(running.job_id)).job.outcome).toMatchObject({ reason: "canceled", exit_code: 4 });
    expect(await worker.stdout(running.job_id)).toBe("up\nbye\n");
    expect((await worker.ended(waiting.job_id)).job).toMatchObject({ state: "canceled" });
    expect((await worker.events(running.job_id)).map(({ event_type }) => event_type)).not.toContain("scheduler.cancel_failed");
  });

  test("the time limit ends a job as timeout, with what it wrote before", async () => {
    const { job_id } = await submit("echo up; sleep 60", { time_limit_seconds: 2 });
    const { job } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "timeout" });
    expect(await worker.stdout(job_id)).toBe("up\n");
  });
});
