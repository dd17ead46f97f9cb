import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { InputRecord } from "../../../../src/domain/input.ts";
import type { JobReceipt, JobSubmissionInput } from "../../../../src/domain/job.ts";
import { sha256Hex } from "../../../../src/lib/digest.ts";
import { temporaryDirectory } from "../../../runner/temporary.ts";
import { Site } from "./site.ts";

/** An agent that says where its prompt is, what is in it, and which allocation it is in. */
const AGENT = `#!/bin/sh
echo '{"type":"task-event","event_type":"agent.step","label":"step","summary":"looking"}'
printf '%s\\n' "$CLIO_RELAY_AGENT_PROMPT" "$(cat "$CLIO_RELAY_AGENT_PROMPT")" "job $SLURM_JOB_ID"
echo "the answer" > "$CLIO_RELAY_AGENT_OUTPUT"
`;

/** A site with an agent, and one slot for jobs on the worker's own host. */
async function siteWith(options: Record<string, unknown> = {}): Promise<Site> {
  const site = new Site({ capacity: { concurrency: 2, control_query_concurrency: 1 } });
  const program = path.join(site.directory, "agent");
  fs.writeFileSync(program, AGENT, { mode: 0o755 });
  site.beside({ agent: { program, adapter: "generic", args: ["{prompt_path}"] }, ...options });
  return site.start();
}

const run = (site: Site, spec: Record<string, unknown>, more: Record<string, unknown> = {}): Promise<JobReceipt> =>
  site.worker.client.submit({ cluster: "local", kind: "remote_agent", spec: { scheduler: {}, ...spec }, ...more } as JobSubmissionInput);

test("an agent in an allocation runs there, takes no slot of the host, reports, and leaves its last message", async () => {
  await using site = await siteWith();
  const prompt = path.join(site.directory, "prompt.md");
  fs.writeFileSync(prompt, "what is here?");
  const job = await run(site, { prompt_path: prompt, workdir: site.directory });
  expect(job.lane).toBe("scheduler");
  expect((await site.worker.ended(job.job_id)).job.outcome).toMatchObject({ reason: "completed" });
  expect((await site.worker.stdout(job.job_id)).trimEnd().split("\n").slice(1)).toEqual([prompt, "what is here?", "job 1"]);
  const { tasks } = await site.worker.client.tasks(job.job_id, { limit: 10 });
  expect((await site.worker.client.taskEvents(tasks[0]!.task_id, { limit: 10 })).events).toMatchObject([{ event_type: "agent.step" }]);
  const { artifacts } = await site.worker.client.artifacts(job.job_id, { limit: 100 });
  const last = artifacts.find(({ kind }) => kind === "agent_last_message")!;
  expect(await (await site.worker.client.artifactContent(last.artifact_id)).text()).toBe("the answer\n");
  expect(site.scheduler.jobs()).toHaveLength(1);
  // On the host itself there is no slot for one.
  const refused = await site.worker.call("POST", "/jobs/remote-agent", JSON.stringify({ cluster: "local", prompt_path: prompt }));
  expect(refused.body).toMatchObject({ reason: "engine_unavailable", cause: "agent_slots" });
  const limited = { cluster: "local", kind: "remote_agent", spec: { prompt_path: prompt, scheduler: {}, timeout_seconds: 5 } };
  expect((await site.worker.call("POST", "/jobs", JSON.stringify(limited))).status).toBe(422);
});

test("a prompt that was brought along is where compute nodes see it", async () => {
  using shared = temporaryDirectory();
  await using site = await siteWith({ sharedSpoolDir: shared.path });
  const text = "brought along\n";
  const ingest = {
    ...{ schema_version: "clio-relay.input-artifact-ingest.v1", cluster: "local", logical_name: "ask.md", size_bytes: text.length },
    ...{ sha256: sha256Hex(text), idempotency_key: "ask", data_base64: Buffer.from(text).toString("base64") },
  };
  const { body } = await site.worker.call<InputRecord>("POST", "/input-artifacts/ingest", JSON.stringify(ingest));
  const { artifact_id, sha256 } = body.artifact;
  const pin = { used_artifact_refs: [{ artifact_id, sha256 }] };
  const { job_id } = await run(site, { inputs: { prompt: artifact_id }, workdir: site.directory }, pin);
  expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  const [, where, what] = (await site.worker.stdout(job_id)).split("\n");
  expect([where, what]).toEqual([path.join(shared.path, job_id, "attempt-1/inputs", sha256, "ask.md"), "brought along"]);
});
