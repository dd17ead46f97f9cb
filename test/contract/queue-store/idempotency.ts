import { describe, expect, test } from "bun:test";
import { command, type OpenScene, refused, settlement } from "./scene.ts";

export function idempotencyContract(open: OpenScene): void {
  describe("idempotency", () => {
    test("10,000 submissions with one key from 20 clients make one job", async () => {
      const scene = await open();
      const submission = command({ idempotency_key: "nightly" });
      let left = 10_000;
      const ids = new Set<string>();
      let fresh = 0;
      const client = async (): Promise<void> => {
        while (left-- > 0) {
          const { job, existing } = await scene.store.submit(submission, "workload");
          ids.add(job.job_id);
          if (!existing) fresh += 1;
        }
      };
      await Promise.all(Array.from({ length: 20 }, client));
      expect(ids.size).toBe(1);
      expect(fresh).toBe(1);
      expect((await scene.store.queueWindow({}, { cursor: 1, limit: 10 }, 100)).total).toBe(1);
    });

    test("what a key has brought about can be looked up, and nothing comes of looking", async () => {
      const scene = await open();
      const { job } = await scene.store.submit(command({ idempotency_key: "k" }), "workload");
      expect(await scene.store.submitted(command({ idempotency_key: "k" }))).toEqual(job);
      expect(await scene.store.submitted(command({ idempotency_key: "new" }))).toBeNull();
      expect(await scene.store.submitted(command())).toBeNull();
      const other = command({ idempotency_key: "k", metadata: { other: true } });
      await refused(scene.store.submitted(other), "job_submission_conflict");
      expect((await scene.store.stats()).active).toBe(1);
      const { job: fresh, existing } = await scene.store.submit(command({ idempotency_key: "new" }), "workload");
      expect([existing, fresh.job_id === job.job_id]).toEqual([false, false]);
    });

    test("another body under the same key is a conflict that names both digests", async () => {
      const scene = await open();
      const { job } = await scene.store.submit(command({ idempotency_key: "k" }), "workload");
      const other = command({ idempotency_key: "k", spec: { ...command().spec, argv: ["false"] } });
      const error = await refused(scene.store.submit(other, "workload"), "job_submission_conflict");
      expect(error.data).toMatchObject({ job_id: job.job_id, existing_digest: job.submission_digest });
      expect(error.data["submitted_digest"]).toMatch(/^[0-9a-f]{64}$/);
      expect(error.data["submitted_digest"]).not.toBe(job.submission_digest);
      expect((await scene.store.stats()).active).toBe(1);
    });

    test("every member of the body counts, the key does not", async () => {
      const scene = await open();
      const { job } = await scene.store.submit(command({ idempotency_key: "k" }), "workload");
      const bodies = [
        command({ metadata: { a: 1 } }),
        command({ cluster: "other" }),
        command({ spec: { ...command().spec, retries: 1 } }),
        command({ used_artifact_refs: [{ artifact_id: "artifact_a", sha256: "0a".repeat(32), provenance: null }] }),
      ];
      for (const body of bodies)
        await refused(scene.store.submit({ ...body, idempotency_key: "k" }, "workload"), "job_submission_conflict");
      const { job: same } = await scene.store.submit(command({ idempotency_key: "another" }), "workload");
      expect(same.submission_digest).toBe(job.submission_digest);
    });

    test("the order of members does not count", async () => {
      const scene = await open();
      const { job } = await scene.store.submit(command({ idempotency_key: "k", metadata: { a: 1, b: { c: 2, d: 3 } } }), "workload");
      const turned = command({ idempotency_key: "k", metadata: { b: { d: 3, c: 2 }, a: 1 } });
      expect(await scene.store.submit(turned, "workload")).toMatchObject({ existing: true, job: { job_id: job.job_id } });
    });

    test("a known key answers with the job as it is now, for as long as the job is there", async () => {
      const scene = await open();
      const { job, fence } = await scene.running({ idempotency_key: "k" });
      await scene.store.settle(fence, settlement(scene.clock, "completed"));
      await scene.reopen();
      const again = await scene.store.submit(command({ idempotency_key: "k" }), "workload");
      expect(again.existing).toBe(true);
      expect(again.job).toMatchObject({ job_id: job.job_id, state: "succeeded" });
    });

    test("a full queue still answers a known key", async () => {
      const scene = await open({ activeJobsMax: 1 });
      const { job } = await scene.store.submit(command({ idempotency_key: "k" }), "workload");
      const again = await scene.store.submit(command({ idempotency_key: "k" }), "workload");
      expect(again).toEqual({ job, existing: true });
    });

    test("keys of one owner session are not those of another", async () => {
      const scene = await open();
      const owned = (session: string) => command({ idempotency_key: "k", owner_session_id: session, owner_session_generation_id: "gen_1" });
      const jobs = [
        await scene.store.submit(command({ idempotency_key: "k" }), "workload"),
        await scene.store.submit(owned("session_a"), "workload"),
        await scene.store.submit(owned("session_b"), "workload"),
      ];
      expect(jobs.map(({ existing }) => existing)).toEqual([false, false, false]);
      expect(new Set(jobs.map(({ job }) => job.job_id)).size).toBe(3);
      expect((await scene.store.submit(owned("session_b"), "workload")).job.job_id).toBe(jobs[2]!.job.job_id);
      await scene.expectSound();
    });

    test("without a key every submission is a job of its own", async () => {
      const scene = await open();
      const one = await scene.submit();
      const two = await scene.submit();
      expect(one.job_id).not.toBe(two.job_id);
      expect(one.idempotency_key).not.toBe(two.idempotency_key);
    });

    test("keys are taken as they are: quotes, line breaks, NUL and lone surrogates", async () => {
      const scene = await open();
      const keys = ["'; DROP TABLE jobs; --", "a\nb", "a\u0000b", "a\u0000c", "x\ud800"];
      for (const key of keys) {
        const { job, existing } = await scene.store.submit(command({ idempotency_key: key }), "workload");
        expect(existing).toBe(false);
        expect(job.idempotency_key).toBe(key.toWellFormed());
        expect(await scene.store.job(job.job_id)).toEqual(job);
      }
      for (const key of keys) expect((await scene.store.submit(command({ idempotency_key: key }), "workload")).existing).toBe(true);
      await scene.expectSound();
    });
  });
}
