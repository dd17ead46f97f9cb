import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { LIMITS } from "../../../src/domain/limits.ts";
import { type ArtifactUse, UsedArtifactRef, type UseProvenance } from "../../../src/domain/lineage.ts";
import { type NewTransform, TransformRef } from "../../../src/domain/transform.ts";
import { artifact, command, type OpenScene, pagesOf, refused, type Scene, settlement } from "./scene.ts";

const digestOf = (letter: string): string => letter.repeat(64);

/** A pin of an artifact as `left` leaves it. */
export const pin = (artifact_id: string, more: Partial<ArtifactUse> = {}): ArtifactUse => ({
  artifact_id,
  sha256: digestOf("a"),
  provenance: null,
  ...more,
});

export const provenance = (more: Partial<UseProvenance> = {}): UseProvenance => ({
  schema_version: "clio-relay.artifact-use.v1",
  evidence: "schema-arg",
  authority: null,
  external_ref: null,
  arg: "deck",
  note: null,
  ...more,
});

/** A job that has ended and left these artifacts. */
export async function left(scene: Scene, ids: readonly string[], overrides: Parameters<Scene["running"]>[0] = {}): Promise<string> {
  const { job, fence } = await scene.running(overrides);
  const artifacts = ids.map((id) => artifact(id, { sha256: digestOf("a") }));
  await scene.store.settle(fence, settlement(scene.clock, "completed", { artifacts }));
  return job.job_id;
}

export const transformOf = (uses: readonly ArtifactUse[], more: Partial<NewTransform> = {}): NewTransform => ({
  activity_id: "run-17",
  mechanism: "harness",
  environment: { tier: "lockfile-hash", lockfile: "uv.lock", sha256: digestOf("b"), platform: null },
  replay: "re-runnable",
  replay_reason: "it draws random numbers",
  used_evidence: uses.map((use) => ({ ...use, provenance: use.provenance ?? provenance() })),
  ...more,
});

const owned = (generation: string) => ({ owner_session_id: "session_1", owner_session_generation_id: generation });

export function lineageContract(open: OpenScene): void {
  describe("used edges", () => {
    test("are recorded with the submission and read from both ends", async () => {
      const scene = await open();
      const producer = await left(scene, ["artifact_b", "artifact_a"]);
      scene.clock.advance(1_000);
      const uses = [pin("artifact_b", { provenance: provenance({ note: "déjà \u0000 \ud83d\ude80" }) }), pin("artifact_a")];
      const consumer = await scene.submit({ used_artifact_refs: uses });
      expect(consumer.used_artifact_refs).toEqual([uses[1]!, uses[0]!]);

      const used = await scene.store.usedArtifacts(consumer.job_id, { cursor: 1, limit: 10 });
      expect(used).toMatchObject({ cursor: 1, limit: 10, next_cursor: 3, total: 2 });
      const edge = { consumer_job_id: consumer.job_id, producer_job_id: producer, sha256: digestOf("a"), created_at: consumer.created_at };
      expect(used.items).toEqual([
        { ...edge, sequence: 1, artifact_id: "artifact_a", provenance: null },
        { ...edge, sequence: 2, artifact_id: "artifact_b", provenance: uses[0]!.provenance },
      ]);
      for (const item of used.items) expect(v.parse(UsedArtifactRef, item)).toEqual(item);
      expect((await scene.store.usedBy("artifact_b", { cursor: 1, limit: 10 })).items).toEqual([used.items[1]!]);
      expect((await scene.store.usedArtifacts(producer, { cursor: 1, limit: 10 })).items).toEqual([]);
      expect(await (await scene.reopen()).usedArtifacts(consumer.job_id, { cursor: 1, limit: 10 })).toEqual(used);
      await scene.expectSound();
    });

    test("go on page by page, and from the last page when there are more", async () => {
      const scene = await open();
      await left(scene, ["artifact_a"]);
      const pins = { used_artifact_refs: [pin("artifact_a")] };
      const consumers = [await scene.submit(pins), await scene.submit(pins), await scene.submit(pins)];
      const page = (cursor: number) => scene.store.usedBy("artifact_a", { cursor, limit: 2 });
      const pages = await pagesOf(page);
      expect(pages.map((items) => items.length)).toEqual([2, 1]);
      expect(pages.flat().map((edge) => edge.consumer_job_id)).toEqual(consumers.map((job) => job.job_id));
      const { next_cursor } = await page(3);
      expect((await page(next_cursor)).items).toEqual([]);
      const later = await scene.submit(pins);
      expect(await page(next_cursor)).toMatchObject({ items: [{ consumer_job_id: later.job_id }], total: 4 });
    });

    test("pages end by bytes too, and go on where they ended", async () => {
      const scene = await open();
      await left(scene, ["artifact_a"]);
      // 400,000 bytes each, of which ten make a page of 4 MiB. More than a client may send: what matters is what a store has.
      const uses = [pin("artifact_a", { provenance: provenance({ note: "é".repeat(200_000) }) })];
      const jobs = await Promise.all(Array.from({ length: 15 }, () => scene.submit({ used_artifact_refs: uses })));
      const pages = await pagesOf((cursor) => scene.store.usedBy("artifact_a", { cursor, limit: 500 }));
      expect(pages.map((items) => items.length)).toEqual([10, 5]);
      expect(pages.flat().map((edge) => edge.consumer_job_id)).toEqual(jobs.map((job) => job.job_id));
    });

    test("of an unknown job or artifact are refused", async () => {
      const scene = await open();
      await refused(scene.store.usedArtifacts("job_none", { cursor: 1, limit: 1 }), "job_not_found");
      await refused(scene.store.usedBy("artifact_none", { cursor: 1, limit: 1 }), "artifact_not_found");
      await refused(scene.store.consumersOf("job_none", 1), "job_not_found");
    });

    test("a pin that does not hold refuses the submission, of which nothing is kept", async () => {
      const scene = await open();
      const producer = await left(scene, ["artifact_a"]);
      const before = await scene.store.stats();
      const submit = (use: ArtifactUse) =>
        scene.store.submit(command({ idempotency_key: "k", used_artifact_refs: [pin("artifact_a"), use] }), "workload");
      expect((await refused(submit(pin("artifact_x")), "artifact_not_found")).data).toEqual({ artifact_id: "artifact_x" });
      const other = await refused(
        scene.store.submit(
          command({ idempotency_key: "k", used_artifact_refs: [pin("artifact_a", { sha256: digestOf("0") })] }),
          "workload",
        ),
        "job_submission_refused",
      );
      expect(other.data).toEqual({
        cause: "artifact_digest",
        artifact_id: "artifact_a",
        recorded_sha256: digestOf("a"),
        submitted_sha256: digestOf("0"),
      });
      expect(await scene.store.stats()).toEqual(before);
      expect(await scene.store.usedBy("artifact_a", { cursor: 1, limit: 10 })).toMatchObject({ items: [], total: 0 });
      expect(await scene.store.consumersOf(producer, 10)).toEqual({ job_ids: [], truncated: false });
      // The key is as free as it was.
      expect(await scene.store.submit(command({ idempotency_key: "k" }), "workload")).toMatchObject({ existing: false });
      await scene.expectSound();
    });

    test("a known key is answered whatever has become of its pins; other pins are another submission", async () => {
      const scene = await open();
      await left(scene, ["artifact_a", "artifact_b"]);
      const submission = command({ idempotency_key: "k", used_artifact_refs: [pin("artifact_a"), pin("artifact_b")] });
      const { job } = await scene.store.submit(submission, "workload");
      const turned = { ...submission, used_artifact_refs: submission.used_artifact_refs.toReversed() };
      expect(await scene.store.submit(turned, "workload")).toEqual({ job, existing: true });
      const others: ArtifactUse[][] = [
        [pin("artifact_a")],
        [pin("artifact_x")],
        [pin("artifact_a"), pin("artifact_b", { provenance: provenance() })],
      ];
      for (const used_artifact_refs of others) {
        await refused(scene.store.submit({ ...submission, used_artifact_refs }, "workload"), "job_submission_conflict");
      }
      expect(await scene.store.usedArtifacts(job.job_id, { cursor: 1, limit: 10 })).toMatchObject({ total: 2 });
    });

    test("join jobs of one owner session and generation only", async () => {
      const scene = await open();
      await left(scene, ["artifact_free"]);
      const mine = await left(scene, ["artifact_mine"], owned("generation_1"));
      const use = (id: string, owner: Partial<ReturnType<typeof owned>>) =>
        scene.store.submit(command({ ...owner, used_artifact_refs: [pin(id)] }), "workload");
      const error = await refused(use("artifact_mine", owned("generation_2")), "resource_ownership_refused");
      expect(error.data).toEqual({ artifact_id: "artifact_mine", producer_job_id: mine });
      await refused(use("artifact_mine", {}), "resource_ownership_refused");
      await refused(use("artifact_free", owned("generation_1")), "resource_ownership_refused");
      expect(await use("artifact_mine", owned("generation_1"))).toMatchObject({ existing: false });
      expect(await use("artifact_free", {})).toMatchObject({ existing: false });
    });

    test("a job may have as many as there may be pins", async () => {
      const scene = await open();
      const ids = Array.from({ length: LIMITS.artifactUses }, (_, i) => `artifact_${String(i).padStart(4, "0")}`);
      await left(scene, ids);
      const { job_id } = await scene.submit({ used_artifact_refs: ids.map((id) => pin(id)) });
      const pages = await pagesOf((cursor) => scene.store.usedArtifacts(job_id, { cursor, limit: 500 }));
      expect(pages.map((items) => items.length)).toEqual([500, 500]);
      expect(pages.flat().map((edge) => edge.artifact_id)).toEqual(ids);
      await scene.expectSound();
    });

    test("an artifact has so many consumers and no more", async () => {
      const scene = await open({ consumersMax: 2 });
      const producer = await left(scene, ["artifact_a", "artifact_b"]);
      // Jobs that use nothing of it are none of them.
      for (let i = 0; i < 3; i++) await scene.submit();
      const submission = command({ used_artifact_refs: [pin("artifact_a"), pin("artifact_b")] });
      const { job: first } = await scene.store.submit(submission, "workload");
      await scene.submit({ used_artifact_refs: [pin("artifact_a")] });
      const error = await refused(scene.store.submit(submission, "workload"), "job_submission_refused");
      expect(error.data).toEqual({ cause: "artifact_consumers", artifact_id: "artifact_a", limit: 2 });
      expect(await scene.store.usedBy("artifact_a", { cursor: 1, limit: 1 })).toMatchObject({ total: 2 });
      expect(await scene.store.usedBy("artifact_b", { cursor: 1, limit: 1 })).toMatchObject({ total: 1 });
      expect(await scene.store.consumersOf(producer, 1)).toEqual({ job_ids: [first.job_id], truncated: true });
    });
  });

  describe("a producer", () => {
    test("is held by every job that uses an artifact of it, each named once", async () => {
      const scene = await open();
      const producer = await left(scene, ["artifact_a", "artifact_b"]);
      expect(await scene.store.consumersOf(producer, 10)).toEqual({ job_ids: [], truncated: false });
      const first = await scene.submit({ used_artifact_refs: [pin("artifact_b"), pin("artifact_a")] });
      const second = await scene.submit({ used_artifact_refs: [pin("artifact_b")] });
      // An end is not a removal.
      await scene.store.requestCancel(first.job_id, { cancel_scheduler: false });
      expect(await scene.store.consumersOf(producer, 10)).toEqual({ job_ids: [first.job_id, second.job_id], truncated: false });
      expect(await scene.store.consumersOf(producer, 1)).toEqual({ job_ids: [first.job_id], truncated: true });
      expect(await scene.store.consumersOf(first.job_id, 10)).toEqual({ job_ids: [], truncated: false });
    });
  });

  describe("transforms", () => {
    test("are recorded once, read, and the same again is what is recorded", async () => {
      const scene = await open();
      await left(scene, ["artifact_a", "artifact_b"]);
      const uses = [pin("artifact_b"), pin("artifact_a")];
      const { job_id } = await scene.submit({ used_artifact_refs: uses });
      expect(await scene.store.transform(job_id)).toBeNull();
      const { transform, existing } = await scene.store.recordTransform(job_id, transformOf(uses, { job_id }));
      expect(existing).toBe(false);
      expect(v.parse(TransformRef, transform)).toEqual(transform);
      expect(transform).toMatchObject({ job_id, activity_id: "run-17", created_at: "2030-01-01T00:00:00.000Z" });
      expect(transform.used_evidence.map((use) => use.artifact_id)).toEqual(["artifact_a", "artifact_b"]);
      scene.clock.advance(1_000);
      expect(await scene.store.recordTransform(job_id, transformOf(uses.toReversed()))).toEqual({ transform, existing: true });
      expect(await (await scene.reopen()).transform(job_id)).toEqual(transform);
      await scene.expectSound();
    });

    test("another one is a conflict, with both digests", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await scene.store.recordTransform(job_id, transformOf([]));
      const error = await refused(scene.store.recordTransform(job_id, transformOf([], { mechanism: "model" })), "transform_conflict");
      expect(error.data["existing_digest"]).toMatch(/^[0-9a-f]{64}$/);
      expect(error.data["submitted_digest"]).toMatch(/^[0-9a-f]{64}$/);
      expect(error.data["existing_digest"]).not.toBe(error.data["submitted_digest"]);
      expect(await scene.store.transform(job_id)).toMatchObject({ mechanism: "harness" });
    });

    test("say of exactly the pinned artifacts how they are known", async () => {
      const scene = await open();
      await left(scene, ["artifact_a", "artifact_b", "artifact_c"]);
      const { job_id } = await scene.submit({ used_artifact_refs: [pin("artifact_a"), pin("artifact_b")] });
      const said = [pin("artifact_a", { sha256: digestOf("0") }), pin("artifact_c")];
      const error = await refused(scene.store.recordTransform(job_id, transformOf(said)), "transform_refused");
      expect(error.data).toEqual({ missing: ["artifact_b"], unpinned: ["artifact_c"], digest_differs: ["artifact_a"] });
      expect(await scene.store.transform(job_id)).toBeNull();
    });

    test("belong to a job, which may have ended", async () => {
      const scene = await open();
      await refused(scene.store.recordTransform("job_none", transformOf([])), "job_not_found");
      await refused(scene.store.transform("job_none"), "job_not_found");
      const ended = await left(scene, []);
      expect(await scene.store.recordTransform(ended, transformOf([]))).toMatchObject({ existing: false });
    });

    test("wake the job's followers", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      let woken = 0;
      scene.store.subscribe(`job:${job_id}`, () => woken++);
      await scene.store.recordTransform(job_id, transformOf([]));
      expect(woken).toBe(1);
    });
  });
}
