import { describe, expect, test } from "bun:test";
import { artifact, capture, type OpenScene, settlement, withRetries } from "./scene.ts";

export function auditContract(open: OpenScene): void {
  describe("audit and repair", () => {
    test("a queue that nobody damaged is sound, and a repair changes nothing of it", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      const captures = { stdout: capture(12), stderr: capture(3) };
      await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero", { captures, artifacts: [artifact("artifact_1")] }));
      await scene.claimed();
      await scene.submit();
      const audit = await scene.store.audit();
      expect(audit).toMatchObject({ ok: true, findings: [], truncated: false });
      expect(audit.checked).toMatchObject({ jobs: 3, tasks: 3, attempts: 2, leases: 1, artifacts: 1, idempotency: 3 });
      const before = await Promise.all([1, 2, 3].map(async (n) => (await scene.store.recentJobs({}, n + 1, 1)).jobs));
      expect(await scene.store.repair()).toEqual({ repaired: [], remaining: [], truncated: false });
      expect(await Promise.all([1, 2, 3].map(async (n) => (await scene.store.recentJobs({}, n + 1, 1)).jobs))).toEqual(before);
    });

    test("findings beyond 1,000 are counted as cut", async () => {
      const scene = await open();
      const jobs = await Promise.all(Array.from({ length: 1_005 }, () => scene.submit()));
      await Promise.all(jobs.map((job) => scene.store.quarantine(job.job_id, "all of them")));
      const audit = await scene.store.audit();
      expect(audit).toMatchObject({ ok: false, truncated: true });
      expect(audit.findings).toHaveLength(1_000);
      const repair = await scene.store.repair();
      expect(repair).toMatchObject({ remaining: [], truncated: true });
      expect(repair.repaired).toHaveLength(1_000);
      await scene.expectSound();
    });
  });
}
