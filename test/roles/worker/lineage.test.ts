import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import path from "node:path";
import * as v from "valibot";
import { historyOf } from "../../../src/api/provenance/history.ts";
import type { Artifact } from "../../../src/domain/artifact.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { edgeCursor, UsedArtifactRef } from "../../../src/domain/lineage.ts";
import { TransformRef } from "../../../src/domain/transform.ts";
import { refused } from "../../contract/queue-store/scene.ts";
import { WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
let producer: string;
let artifact: Artifact;
let consumer: string;
const provenance = { schema_version: "clio-relay.artifact-use.v1", evidence: "schema-arg", arg: "mesh" } as const;

beforeAll(async () => {
  worker = await new WorkerHarness().start();
  const made = await worker.shell("printf mesh > mesh.dat", { outputs: ["mesh.dat"], workdir: worker.directory });
  producer = made.job_id;
  await worker.ended(producer);
  artifact = (await worker.client.artifacts(producer)).artifacts.find(({ kind }) => kind === "execution_output")!;
  const used = await worker.submit(
    { argv: ["true"] },
    { used_artifact_refs: [{ artifact_id: artifact.artifact_id, sha256: artifact.sha256, provenance }] },
  );
  consumer = used.job_id;
  await worker.ended(consumer);
});
afterAll(() => worker[Symbol.asyncDispose]());

const pinned = () => ({ artifact_id: artifact.artifact_id, sha256: artifact.sha256 });

async function call(method: string, target: string, body?: unknown) {
  const response = await fetch(`http://relay${target}`, {
    unix: path.join(worker.directory, "run", "worker.sock"),
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("lineage", () => {
  test("is read in both directions, with cursors that go on", async () => {
    const used = await worker.client.lineage.usedArtifacts(consumer);
    expect(used).toMatchObject({ cursor: edgeCursor(1), limit: 100, next_cursor: edgeCursor(2), total: 1 });
    const [edge] = used.used_artifacts;
    expect(v.parse(UsedArtifactRef, edge)).toEqual(edge!);
    expect(edge).toMatchObject({ ...pinned(), consumer_job_id: consumer, producer_job_id: producer, provenance });
    expect((await worker.client.lineage.usedBy(artifact.artifact_id)).used_by).toEqual([edge!]);
    const { next_cursor } = used;
    expect(await worker.client.lineage.usedArtifacts(consumer, { cursor: next_cursor })).toMatchObject({ used_artifacts: [], next_cursor });
    const history = await historyOf(worker.client, consumer, new AbortController().signal);
    expect(history.inputs).toEqual([{ edge: edge!, artifact }]);
  });

  test.each(["cursor=1", "cursor=edge_1", `cursor=edge_${"9".repeat(21)}`, "limit=0", "limit=501"])(
    "refuses the query %s",
    async (query) => {
      for (const route of [`/jobs/${consumer}/used-artifacts`, `/artifacts/${artifact.artifact_id}/used-by`]) {
        expect(await call("GET", `${route}?${query}`)).toMatchObject({ status: 422, body: { reason: "request_validation_failed" } });
      }
    },
  );

  test("takes the last cursor there can be", async () => {
    const answer = await call("GET", `/jobs/${consumer}/used-artifacts?cursor=edge_${"9".repeat(20)}`);
    expect(answer).toMatchObject({ status: 200, body: { used_artifacts: [], total: 1 } });
  });

  test("of what is not there is not found", async () => {
    await refused(worker.client.lineage.usedArtifacts("job_none"), "job_not_found");
    await refused(worker.client.lineage.usedBy("artifact_none"), "artifact_not_found");
  });
});

describe("a submission's pins", () => {
  const submit = (refs: unknown) =>
    call("POST", "/jobs", { cluster: "local", kind: "command", spec: { argv: ["true"] }, used_artifact_refs: refs });

  test("are refused by what is wrong with them, and nothing is admitted", async () => {
    const before = (await worker.client.queue({ include_terminal: true })).source_total;
    expect(await submit([{ ...pinned(), artifact_id: "artifact_none" }])).toMatchObject({
      status: 404,
      body: { reason: "artifact_not_found" },
    });
    expect(await submit([{ ...pinned(), sha256: "0".repeat(64) }])).toMatchObject({
      status: 422,
      body: { reason: "job_submission_refused", cause: "artifact_digest", recorded_sha256: artifact.sha256 },
    });
    const owner = { owner_session_id: "s", owner_session_generation_id: "g" };
    const body = { cluster: "local", kind: "command", spec: { argv: ["true"] }, used_artifact_refs: [pinned()], ...owner };
    expect(await call("POST", "/jobs", body)).toMatchObject({ status: 403, body: { reason: "resource_ownership_refused" } });
    expect((await worker.client.queue({ include_terminal: true })).source_total).toBe(before);
  });

  test.each([
    ["twice the same", () => [pinned(), pinned()]],
    ["a digest in capitals", () => [{ ...pinned(), sha256: artifact.sha256.toUpperCase() }]],
    ["an unknown member", () => [{ ...pinned(), size: 4 }]],
    ["evidence of no known kind", () => [{ ...pinned(), provenance: { ...provenance, evidence: "guess" } }]],
    ["another schema of provenance", () => [{ ...pinned(), provenance: { ...provenance, schema_version: "v0" } }]],
    ["one of more than 8 KiB", () => [{ ...pinned(), provenance: { ...provenance, authority: "é".repeat(4_000), note: "x".repeat(512) } }]],
    ["more than 1,000", () => Array.from({ length: 1_001 }, (_, at) => ({ ...pinned(), artifact_id: `artifact_${at}` }))],
    [
      "all together more than 256 KiB",
      () =>
        Array.from({ length: 400 }, (_, at) => ({
          ...pinned(),
          artifact_id: `artifact_${at}`,
          provenance: { ...provenance, note: "x".repeat(512) },
        })),
    ],
  ])("that do not fit are refused: %s", async (_name, refs) => {
    expect(await submit(refs())).toMatchObject({ status: 422, body: { reason: "request_validation_failed" } });
  });
});

describe("a transform", () => {
  const transform = () => ({
    activity_id: "run-17",
    mechanism: "harness",
    environment: { tier: "image-digest", image: "registry/solver:3", digest: `sha256:${"0".repeat(64)}` },
    replay: "reproducible",
    replay_reason: "the same image, the same seed",
    used_evidence: [{ ...pinned(), provenance }],
  });

  test("is recorded once, and is part of the job's status", async () => {
    expect(await call("GET", `/jobs/${consumer}/transform`)).toEqual({ status: 200, body: null as never });
    expect((await worker.client.status(consumer)).transform).toBeNull();
    const bad = { ...transform(), used_evidence: [] };
    expect(await call("POST", `/jobs/${consumer}/transform`, bad)).toMatchObject({
      status: 422,
      body: { reason: "transform_refused", missing: [artifact.artifact_id] },
    });
    const other = { ...transform(), job_id: producer };
    expect(await call("POST", `/jobs/${consumer}/transform`, other)).toMatchObject({ status: 422, body: { reason: "transform_refused" } });

    const first = await call("POST", `/jobs/${consumer}/transform`, transform());
    expect(first.status).toBe(201);
    const recorded = v.parse(TransformRef, first.body);
    expect(await call("POST", `/jobs/${consumer}/transform`, { ...transform(), job_id: consumer })).toEqual({ ...first, status: 200 });
    expect(await worker.client.lineage.transform(consumer)).toEqual(recorded);
    expect((await worker.client.status(consumer)).transform).toEqual(recorded);
    const conflict = await refused(
      worker.client.lineage.recordTransform(consumer, { ...transform(), replay: "re-runnable" } as never),
      "transform_conflict",
    );
    expect(conflict.data["existing_digest"]).not.toBe(conflict.data["submitted_digest"]);
  });

  test.each([
    ["a tier that is none", () => ({ ...transform(), environment: { tier: "hearsay" } })],
    ["a member of another tier", () => ({ ...transform(), environment: { ...transform().environment, lockfile: "uv.lock" } })],
    [
      "an environment of more than 16 KiB",
      () => ({ ...transform(), environment: { tier: "declared", description: "\u0001".repeat(4_096), platform: null } }),
    ],
    ["evidence without provenance", () => ({ ...transform(), used_evidence: [pinned()] })],
    ["no reason", () => ({ ...transform(), replay_reason: "" })],
  ])("that does not fit is refused: %s", async (name, body) => {
    const answer = await call("POST", `/jobs/${producer}/transform`, body());
    expect([name, answer.status, answer.body["reason"]]).toEqual([name, 422, "request_validation_failed"]);
  });

  test("of more than 192 KiB is refused", async () => {
    const note = "x".repeat(512);
    const used_evidence = Array.from({ length: LIMITS.artifactUses }, (_, at) => ({
      ...pinned(),
      artifact_id: `artifact_${at}`,
      provenance: { ...provenance, note },
    }));
    expect(await call("POST", `/jobs/${producer}/transform`, { ...transform(), used_evidence })).toMatchObject({
      status: 422,
      body: { reason: "request_validation_failed" },
    });
  });
});
