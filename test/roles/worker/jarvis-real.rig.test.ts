import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { RealJarvis } from "../../rigs/jarvis/real.ts";
import { describeWith } from "../../runner/components.ts";
import { removeTree } from "../../runner/remove.ts";
import { JarvisRuns, processesWith } from "./jarvis-runs.ts";

const pipeline = (name: string, settings: Readonly<Record<string, number>> = {}): string => {
  const lines = Object.entries({ steps: 3, delay: 0.1, ...settings }).map(([setting, value]) => `    ${setting}: ${value}\n`);
  return `# counts\nname: ${name}\npkgs:\n  - pkg_type: demo.counter\n    pkg_name: c1\n${lines.join("")}`;
};

describeWith("jarvis", "a pipeline of a real JARVIS-CD", () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-jarvis-real-"));
  let jarvis: RealJarvis;
  let runs: JarvisRuns;

  beforeAll(async () => {
    jarvis = new RealJarvis(directory);
    runs = new JarvisRuns(jarvis);
    await runs.worker.start();
  });
  afterAll(async () => {
    await runs.worker[Symbol.asyncDispose]();
    removeTree(directory);
  });
  const executions = (name: string): string[] =>
    fs.readdirSync(path.join(jarvis.shared, name, "executions")).filter((one) => one.startsWith("jarvis_"));

  test("runs to its end, reports progress and leaves JARVIS' documents", async () => {
    const text = pipeline("well");
    const job = await runs.run(text);
    const { job: ended, progress } = await runs.worker.ended(job.job_id);
    expect(ended.outcome).toMatchObject({ reason: "completed", exit_code: 0 });
    expect(progress.map(({ label, current, total }) => [label, current, total])).toEqual([["c1", 3, 3]]);
    expect(await runs.artifactText(job.job_id, "pipeline.yaml")).toBe(text);
    const record = JSON.parse(await runs.artifactText(job.job_id, "jarvis-record.json"));
    expect(record).toMatchObject({ execution_id: executions("well")[0], state: "completed", return_code: 0 });
    expect(JSON.parse(await runs.artifactText(job.job_id, "jarvis-handle.json"))).toMatchObject({ mode: "direct", pipeline_id: "well" });
    const refused = (await runs.worker.events(job.job_id)).filter(({ event_type }) => event_type === "runtime.metadata_refused");
    expect(refused).toEqual([]);
  });

  test("fails with the package that failed, and is refused for one that is missing", async () => {
    const job = await runs.run(pipeline("ill", { rc: 9 }));
    const { job: ended } = await runs.worker.ended(job.job_id);
    expect(ended.outcome!.reason).toBe("engine_failed");
    expect(ended.outcome!.message).toContain("c1");
    const absent = pipeline("absent").replace("demo.counter", "demo.absent");
    expect(await runs.refusal({ pipeline_yaml: absent })).toMatchObject({
      reason: "jarvis_submission_refused",
      cause: "package_missing",
    });
  });

  test("goes on under a new worker and runs once; a cancel ends its applications, too", async () => {
    const job = await runs.run(pipeline("long", { steps: 5_000 }));
    await runs.until(job.job_id, "jarvis.started");
    await runs.worker.kill();
    await runs.worker.start();
    await runs.until(job.job_id, "jarvis.execution_recovery_attached");
    expect(processesWith("STEP $i of 5000").length).toBeGreaterThan(0);
    await runs.worker.client.cancel(job.job_id);
    const { job: ended } = await runs.worker.ended(job.job_id);
    expect(ended.outcome).toMatchObject({ reason: "canceled", residual: [] });
    expect(executions("long")).toHaveLength(1);
    expect(processesWith("STEP $i of 5000")).toEqual([]);
  });

  test("that JARVIS keeps runs by its name", async () => {
    const job = await runs.submit({ pipeline_name: "well" });
    expect((await runs.worker.ended(job.job_id)).job.outcome!.reason).toBe("completed");
    expect(executions("well")).toHaveLength(2);
  });
});
