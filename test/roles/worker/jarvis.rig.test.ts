import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { counterPipeline, JarvisStandIn } from "../../rigs/jarvis/stand-in.ts";
import { describeWith } from "../../runner/components.ts";
import { removeTree } from "../../runner/remove.ts";
import { eventually } from "../../runner/wait.ts";
import { JarvisRuns, processesWith } from "./jarvis-runs.ts";

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-jarvis-"));
const jarvis = new JarvisStandIn(directory).initialize();
const runs = new JarvisRuns(jarvis);
const { worker } = runs;

describeWith("python3", "a pipeline", () => {
  beforeAll(async () => void (await worker.start()));
  afterAll(async () => {
    await worker[Symbol.asyncDispose]();
    removeTree(directory);
  });

  test("runs as it was submitted, and leaves its text, JARVIS' documents and what JARVIS calls finished", async () => {
    const text = counterPipeline("well", { steps: 3, listing: true });
    const job = await runs.run(text);
    const { job: ended, progress } = await worker.ended(job.job_id);
    expect(ended.outcome).toMatchObject({ reason: "completed", exit_code: 0 });
    expect(progress.map(({ label, current, total, unit }) => ({ label, current, total, unit }))).toEqual([
      { label: "c1", current: 3, total: 3, unit: "step" },
    ]);
    expect(await runs.artifactText(job.job_id, "pipeline.yaml")).toBe(text);
    expect(await runs.artifactText(job.job_id, "result.txt")).toBe("result of c1\n");
    expect(JSON.parse(await runs.artifactText(job.job_id, "jarvis-record.json"))).toMatchObject({
      state: "completed",
      pipeline_id: "well",
    });
    const { artifacts } = await worker.client.artifacts(job.job_id, { limit: 100 });
    expect(artifacts.map(({ kind }) => kind).toSorted()).toEqual(
      [
        "execution_output",
        "jarvis_pipeline",
        "log_capture",
        "provenance",
        ...Array(5).fill("runtime_metadata"),
        "stderr",
        "stdout",
      ].toSorted(),
    );
    const events = await worker.events(job.job_id);
    const started = events.filter(({ event_type }) => event_type === "jarvis.started");
    expect(started.map(({ payload }) => payload)).toMatchObject([
      { execution_id: jarvis.executions("well")[0]!, pipeline_id: "well", mode: "direct" },
    ]);
    const states = events.filter(({ event_type }) => event_type === "runtime.metadata_ingested").map(({ payload }) => payload["state"]);
    expect(states.at(-1)).toBe("completed");
    const { tasks } = await worker.client.tasks(job.job_id, { limit: 10 });
    expect(tasks.map(({ name, state }) => [name, state])).toEqual([
      ["jarvis", "succeeded"],
      ["package c1", "succeeded"],
    ]);
    const timeline = (await worker.client.taskEvents(tasks[1]!.task_id, { limit: 10 })).events;
    expect(timeline.map(({ label, status }) => [label, status])).toEqual([
      ["c1", "planned"],
      ["c1", "running"],
      ["c1", "succeeded"],
    ]);
    const [execution_id] = jarvis.executions("well");
    expect((await worker.client.status(job.job_id)).jarvis).toMatchObject({
      execution_id,
      said: { pipeline_id: "well", state: "completed" },
    });
    expect(jarvis.executions("well")).toEqual([`jarvis_${jarvis.executions("well")[0]!.slice(7)}`]);
  });

  test("fails with what JARVIS' record says, and as the job of its key", async () => {
    const text = counterPipeline("ill", { rc: 9 });
    const job = await runs.submit({ pipeline_yaml: text }, { idempotency_key: "ill" });
    const { job: ended } = await worker.ended(job.job_id);
    expect(ended.outcome).toMatchObject({ reason: "engine_failed", exit_code: 1 });
    expect(ended.outcome!.message).toContain("package 'c1': counter exited 9");
    const again = await runs.submit({ pipeline_yaml: text }, { idempotency_key: "ill" });
    expect([again.existing, again.job_id]).toEqual([true, job.job_id]);
    expect(jarvis.executions("ill")).toHaveLength(1);
  });

  test("goes on under a new worker, is asked for by its id and runs once; a cancel leaves nothing of it", async () => {
    const job = await runs.run(counterPipeline("long", { steps: 1_000, delay: 0.05 }));
    await runs.until(job.job_id, "jarvis.started");
    await worker.kill();
    await worker.start();
    await runs.until(job.job_id, "jarvis.execution_recovery_attached");
    const said = await eventually(
      async () => {
        const told = (await worker.client.status(job.job_id)).jarvis?.said;
        // It prepares a run before that runs.
        return told?.state === "preparing" ? undefined : told;
      },
      { what: "what JARVIS says" },
    );
    expect(said).toMatchObject({ pipeline_id: "long", mode: "direct", state: "running", scheduler_native_id: null });
    const before = (await worker.client.status(job.job_id)).progress[0]?.current ?? 0;
    await runs.until(job.job_id, "progress.updated");
    await worker.client.cancel(job.job_id);
    const { job: ended, progress } = await worker.ended(job.job_id);
    expect(ended.outcome).toMatchObject({ reason: "canceled", residual: [] });
    expect(progress[0]!.current!).toBeGreaterThan(before);
    expect(jarvis.executions("long")).toHaveLength(1);
    const executionId = jarvis.executions("long")[0]!;
    expect(processesWith(executionId)).toEqual([]);
    const events = await worker.events(job.job_id);
    const shown = events.filter(({ event_type }) => event_type === "jarvis.started");
    expect(shown).toHaveLength(1);
  });

  test("that the cluster has runs by its name, and its text at that moment is an artifact", async () => {
    jarvis.keep("kept", { name: "kept", pkgs: [{ pkg_type: "demo.counter", pkg_name: "c1" }] });
    const job = await runs.submit({ pipeline_name: "kept" });
    expect((await worker.ended(job.job_id)).job.outcome!.reason).toBe("completed");
    const { artifacts } = await worker.client.artifacts(job.job_id, { limit: 100 });
    expect(artifacts.map(({ kind }) => kind)).toContain("jarvis_pipeline_reference");
    expect(JSON.parse(await runs.artifactText(job.job_id, "pipeline.yaml"))).toMatchObject({ name: "kept" });
  });

  test("whose packages hide exit codes is completed, with a warning", async () => {
    const job = await runs.run(JSON.stringify({ name: "mute", pkgs: [{ pkg_type: "builtin.my_shell", pkg_name: "sh1", rc: 7 }] }));
    const { job: ended } = await worker.ended(job.job_id);
    expect(ended.outcome!.reason).toBe("completed");
    expect(ended.outcome!.message).toContain("sh1");
    const events = await worker.events(job.job_id);
    expect(events.filter(({ event_type }) => event_type === "runtime.metadata_untrusted")).toHaveLength(1);
  });

  test("that ends with 0 and without a handle has not succeeded, and documents of a later version are passed over once", async () => {
    const job = await runs.run(counterPipeline("odd", { lose_handle: true, progress_version: "jarvis.progress.v9" }));
    const { job: ended } = await worker.ended(job.job_id);
    expect(ended.outcome!.reason).toBe("engine_failed");
    expect(ended.outcome!.message).toContain("handle");
    const refused = (await worker.events(job.job_id)).filter(({ event_type }) => event_type === "runtime.metadata_refused");
    expect(refused.map(({ payload }) => payload["question"])).toEqual(["progress"]);
  });

  test("is refused by name before anything is recorded", async () => {
    const refused = (cause: string, more = {}) => ({ status: 422, reason: "jarvis_submission_refused", cause, ...more });
    expect(await runs.refusal({ pipeline_yaml: "name: a\npkgs: [" })).toEqual(refused("yaml", { line: 2, column: 8 }));
    expect(await runs.refusal({ pipeline_yaml: "name: a\npkgs: [{pkg_type: demo.absent}]" })).toEqual(refused("package_missing"));
    expect(await runs.refusal({ pipeline_yaml: "name: a\npkgs: [{pkg_type: nowhere.absent}]" })).toEqual(refused("package_missing"));
    expect(await runs.refusal({ pipeline_yaml: "name: a\npkgs: [{pkg_type: demo.broken}]" })).toEqual(refused("package_broken"));
    expect(await runs.refusal({ pipeline_yaml: counterPipeline("a", { deck: "in.lj" }) })).toEqual(refused("input"));
    expect(await runs.refusal({ pipeline_yaml: counterPipeline("a"), exclusive: true })).toEqual(refused("scheduler"));
    for (const member of [{ array: "1-3" }, { sbatch_args: ["--job-name=x"] }, { requeue: true }, { wait: true }, { clusters: "all" }]) {
      const text = JSON.stringify({ ...JSON.parse(counterPipeline("a")), scheduler: { name: "slurm", ...member } });
      expect(await runs.refusal({ pipeline_yaml: text })).toEqual(refused("scheduler"));
    }
    expect(await runs.refusal({ pipeline_name: "absent" })).toEqual(refused("pipeline_missing"));
    expect(await runs.refusal({ pipeline_path: path.join(directory, "absent.yaml") })).toEqual(refused("pipeline_missing"));
    expect((await worker.client.jobs({ kind: "jarvis" })).jobs.some(({ title }) => title?.includes("absent"))).toBe(false);
  });
});

describeWith("python3", "a worker without a usable JARVIS-CD", () => {
  test("refuses pipelines, and says what is wrong", async () => {
    const place = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-no-jarvis-"));
    try {
      const missing = new JarvisRuns({ program: path.join(place, "jarvis"), environment: {} });
      const unready = new JarvisRuns({ program: jarvis.program, environment: { JARVIS_ROOT: place } });
      const old = path.join(place, "bin", "jarvis");
      fs.mkdirSync(path.join(place, "bin"));
      fs.writeFileSync(old, "#!/usr/bin/env python3\n", { mode: 0o755 });
      const without = new JarvisRuns({ program: old, environment: {} });
      for (const [one, cause] of [
        [missing, "jarvis_missing"],
        [unready, "jarvis_uninitialized"],
        [without, "jarvis_version"],
      ] as const) {
        await using w = await one.worker.start();
        expect(await one.refusal({ pipeline_yaml: counterPipeline("a") })).toEqual({ status: 422, reason: "engine_unavailable", cause });
        expect((await w.client.jobs({})).jobs).toEqual([]);
      }
    } finally {
      removeTree(place);
    }
  });
});
