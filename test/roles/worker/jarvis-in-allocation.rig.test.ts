import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { InputRecord } from "../../../src/domain/input.ts";
import type { JobSubmissionInput } from "../../../src/domain/job.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { auditOffline } from "../../../src/roles/worker/offline.ts";
import { allocatedPipeline } from "../../rigs/jarvis/stand-in.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import type { Manner } from "./allocation/fake-scheduler.ts";
import { historyFaults } from "./harness.ts";
import { JarvisCluster } from "./jarvis-cluster.ts";
import type { Death } from "./mortal.ts";

const at = (when: Death["when"], call: string): Death => ({ when, call });

type Case = readonly [step: string, deaths: readonly Death[], manner: Partial<Manner>, attempts: number];

// Step by step (docs/jarvis.md, "In an allocation"), each by the call that begins or ends it. The worker after one death dies at the next.
const CASES: readonly Case[] = [
  [
    "at each step in turn",
    [
      at("after", "launch"),
      at("before", "intendSubmission"),
      at("after", "intendSubmission"),
      at("before", "recordSubmission"),
      at("after", "recordSubmission"),
      at("before", "observeScheduler"),
      at("before", "settle"),
      at("after", "settle"),
    ],
    {},
    1,
  ],
  ["before anything of it has begun", [at("after", "claim"), at("before", "launch")], {}, 3],
  ["while JARVIS' sbatch is killed behind the scheduler's acceptance", [at("before", "recordSubmission")], { submit: "dies" }, 1],
];

async function survives([_step, deaths, manner, attempts]: Case): Promise<void> {
  await using cluster = new JarvisCluster();
  cluster.scheduler.behave(manner);
  const text = allocatedPipeline("p", { steps: 3, delay: 0.05 });
  for (const death of deaths) await cluster.dies(text, death);
  const { worker } = cluster.next(null);
  await worker.start();
  const { job_id, existing } = await cluster.submit(worker, text);
  expect(existing).toBe(true);
  const { job, progress, attempt, jarvis } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "succeeded", attempts, outcome: { reason: "completed" } });
  expect(progress.map(({ label, current }) => [label, current])).toEqual([["c1", 3]]);
  expect(jarvis!.said).toMatchObject({ pipeline_id: "p", mode: "scheduler", state: "completed" });
  expect(Date.parse(attempt!.ended_at!)).toBeGreaterThanOrEqual(Date.parse(jarvis!.said!.updated_at));
  // One run, whoever asked for it: JARVIS has one execution, the scheduler one job, and every step was said once.
  expect(cluster.jarvis.executions("p")).toHaveLength(1);
  expect(cluster.scheduler.jobs()).toHaveLength(1);
  const stdout = await worker.stdout(job_id);
  expect(stdout.match(/JARVIS_STEP \d\/3/g)).toEqual(["JARVIS_STEP 1/3", "JARVIS_STEP 2/3", "JARVIS_STEP 3/3"]);
  expect(historyFaults(await worker.events(job_id))).toEqual([]);
  expect(await worker.drain()).toBe(0);
  expect(await auditOffline(worker.coreDir)).toMatchObject({ ok: true, findings: [] });
}

describeWith("python3", "a worker that is killed while JARVIS submits", () => {
  test.each(CASES.map((one) => [one[0], one] as const))(
    "%s: the next one asks for the same execution, and nothing runs twice",
    async (_step, one) => survives(one),
  );
});

describeWith("python3", "a submission of JARVIS' that was refused while a source is away", () => {
  test("is not believed without it: what JARVIS has submitted would run", async () => {
    await using cluster = new JarvisCluster();
    cluster.scheduler.behave({ submit: "refuses", unaccounted: true });
    const { worker } = cluster.next(null);
    await worker.start();
    const { job_id } = await cluster.submit(worker, allocatedPipeline("p"));
    const told = async () => (await worker.events(job_id)).filter(({ event_type }) => event_type === "scheduler.reconciliation_unresolved");
    const [event] = await eventually(async () => (await told()).length > 0 && (await told()), { what: "that it is unresolved" });
    expect(event!.message).toContain("accounts: no answer");
    expect((await worker.client.status(job_id)).terminal).toBe(false);
    cluster.scheduler.behave({ unaccounted: false });
    const { outcome } = (await worker.ended(job_id)).job;
    expect(outcome).toMatchObject({ reason: "engine_failed", message: expect.stringContaining("JARVIS did not submit it") });
    expect(await told()).toHaveLength(1);
    expect(cluster.scheduler.jobs()).toEqual([]);
  });
});

describeWith("python3", "a pipeline in an allocation whose nodes see another spool than the cluster's", () => {
  test("reads copies of its staged files there", async () => {
    await using cluster = new JarvisCluster();
    const shared = path.join(cluster.directory, "shared spool");
    const { worker } = cluster.next(null, { sharedSpoolDir: shared });
    await worker.start();
    const text = "units lj\n";
    const ingest = {
      ...{ schema_version: "clio-relay.input-artifact-ingest.v1", cluster: "local", logical_name: "in.lj", size_bytes: text.length },
      ...{ sha256: sha256Hex(text), idempotency_key: "in", data_base64: Buffer.from(text).toString("base64") },
    };
    const { body } = await worker.call<InputRecord>("POST", "/input-artifacts/ingest", JSON.stringify(ingest));
    const { artifact_id, sha256 } = body.artifact;
    const { job_id } = await worker.client.submit({
      ...{ cluster: "local", kind: "jarvis", used_artifact_refs: [{ artifact_id, sha256 }] },
      spec: { pipeline_yaml: allocatedPipeline("p", { deck: "in.lj" }), inputs: { "c1.deck": artifact_id } },
    } as JobSubmissionInput);
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
    expect(await worker.stdout(job_id)).toContain("deck: units lj");
    const ran = JSON.parse(fs.readFileSync(path.join(worker.attemptDir(job_id), "pipeline.yaml"), "utf8"));
    expect(ran.pkgs[0].deck).toBe(path.join(shared, "pipelines", `${job_id}-1`, "inputs", sha256, "in.lj"));
  });
});
