import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Artifact } from "../../../src/domain/artifact.ts";
import { Job, JobSubmission } from "../../../src/domain/job.ts";
import type { InputFile } from "../../../src/queue/store.ts";
import { type OpenScene, refused, type Scene, settlement } from "./scene.ts";

const digest = (n: number): string => n.toString(16).padStart(64, "0");

/** An ingest of a file of three bytes. */
export const ingest = (key: string, sha256 = digest(1), name = "in.lj"): [JobSubmission, InputFile] => [
  {
    kind: "input_ingest",
    cluster: "c",
    spec: { logical_name: name, size_bytes: 3, sha256 },
    idempotency_key: key,
    owner_session_id: null,
    owner_session_generation_id: null,
    used_artifact_refs: [],
    metadata: {},
  },
  { name, uri: `input:${sha256}/${name}`, size_bytes: 3, sha256, metadata: {} },
];

const withInput = (scene: Scene, artifact: Pick<Artifact, "artifact_id" | "sha256">) =>
  scene.submit({
    spec: { ...SPEC, inputs: { deck: artifact.artifact_id } },
    used_artifact_refs: [{ artifact_id: artifact.artifact_id, sha256: artifact.sha256, provenance: null }],
  });

const SPEC = { argv: ["true"], workdir: null, env: {}, login: false, timeout_seconds: null, outputs: [], retries: 0 };

export function inputContract(open: OpenScene): void {
  describe("inputs", () => {
    test("an ingest is a job that has succeeded, with its artifact, whose id follows from the job's", async () => {
      const scene = await open({ activeJobsMax: 1 });
      await scene.submit();
      const { job, artifact, existing } = await scene.store.recordInput(...ingest("one"));
      expect(existing).toBe(false);
      expect(v.parse(Job, job)).toEqual(job);
      expect(v.parse(Artifact, artifact)).toEqual(artifact);
      expect(job).toMatchObject({
        kind: "input_ingest",
        state: "succeeded",
        attempts: 0,
        outcome: { reason: "completed", exit_code: null },
      });
      const id = new Bun.CryptoHasher("sha256").update(`clio-relay.input:${job.job_id}`).digest("hex").slice(0, 32);
      expect(artifact).toMatchObject({ artifact_id: `artifact_${id}`, job_id: job.job_id, kind: "input", name: "in.lj", sequence: 1 });
      expect(await scene.store.job(job.job_id)).toEqual(job);
      expect(await scene.store.artifact(artifact.artifact_id)).toEqual(artifact);
      expect(await scene.eventTypes(job.job_id)).toEqual(["job.queued", "task.queued", "artifact.created", "job.succeeded"]);
      expect((await scene.store.tasks(job.job_id, { cursor: 1, limit: 9 })).items[0]?.state).toBe("succeeded");
      expect((await scene.store.stats()).active).toBe(1);
      await scene.expectSound();
    });

    test("a known key gives the same, another file under it is a conflict, also after the store was opened again", async () => {
      const scene = await open();
      const first = await scene.store.recordInput(...ingest("one"));
      await scene.reopen();
      expect(await scene.store.recordInput(...ingest("one"))).toEqual({ ...first, existing: true });
      await refused(scene.store.recordInput(...ingest("one", digest(2))), "job_submission_conflict");
      const other = await scene.store.recordInput(...ingest("two"));
      expect(other.artifact.artifact_id).not.toBe(first.artifact.artifact_id);
      await scene.expectSound();
    });

    test("nothing claims it", async () => {
      const scene = await open();
      await scene.store.recordInput(...ingest("one"));
      const { job } = await scene.running();
      expect(job.kind).toBe("command");
      await scene.expectSound();
    });

    test("which contents an input has", async () => {
      const scene = await open();
      await scene.store.recordInput(...ingest("one", digest(1)));
      await scene.store.recordInput(...ingest("two", digest(2), "b"));
      const { fence } = await scene.running();
      const output = { artifact_id: scene.id("artifact"), kind: "execution_output", name: "o", uri: "spool:o", size_bytes: 1 } as const;
      const artifacts = [{ ...output, sha256: digest(3), metadata: {} }];
      await scene.store.settle(fence, { ...settlement(scene.clock, "completed"), artifacts });
      expect([...(await scene.store.namedInputs([1, 2, 3, 4].map(digest)))]).toEqual([digest(1), digest(2)]);
      expect(await scene.store.namedInputs([])).toEqual(new Set());
    });

    test("a job's inputs are inputs, and each has its edge", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const output = { artifact_id: scene.id("artifact"), kind: "execution_output", name: "o", uri: "spool:o", size_bytes: 1 } as const;
      const artifacts = [{ ...output, sha256: digest(3), metadata: {} }];
      await scene.store.settle(fence, { ...settlement(scene.clock, "completed"), artifacts });
      const failure = await refused(withInput(scene, artifacts[0]!), "job_submission_refused");
      expect(failure.data).toMatchObject({ cause: "input_kind", input: "deck", kind: "execution_output" });

      // Of whatever kind the job is.
      const agent = v.parse(JobSubmission, {
        cluster: "c",
        kind: "remote_agent",
        spec: { inputs: { prompt: artifacts[0]!.artifact_id } },
        used_artifact_refs: [{ artifact_id: artifacts[0]!.artifact_id, sha256: digest(3) }],
      });
      const ofAgent = await refused(scene.store.submit(agent, "workload"), "job_submission_refused");
      expect(ofAgent.data).toMatchObject({ cause: "input_kind", input: "prompt" });

      const { artifact, job } = await scene.store.recordInput(...ingest("one"));
      const consumer = await withInput(scene, artifact);
      const { items } = await scene.store.usedArtifacts(consumer.job_id, { cursor: 1, limit: 9 });
      expect(items).toMatchObject([{ artifact_id: artifact.artifact_id, producer_job_id: job.job_id, sha256: artifact.sha256 }]);
      await refused(withInput(scene, { ...artifact, sha256: digest(9) }), "job_submission_refused");
      await refused(withInput(scene, { artifact_id: "artifact_none", sha256: digest(9) }), "artifact_not_found");
      await scene.expectSound();
    });

    test("lists leave them out where that is asked for", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const { job } = await scene.store.recordInput(...ingest("one"));
      const listed = async (filter: object) => (await scene.store.recentJobs(filter, null, 9)).jobs.map((one) => one.job_id);
      expect(await listed({})).toEqual([job.job_id, job_id]);
      expect(await listed({ withoutInputs: true })).toEqual([job_id]);
    });
  });
}
