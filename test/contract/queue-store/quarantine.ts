import { describe, expect, test } from "bun:test";
import { type OpenScene, ROOMY, refused, settlement } from "./scene.ts";

export function quarantineContract(open: OpenScene): void {
  describe("quarantine", () => {
    test("a record that cannot be read is kept out, and the claim goes on to the next one", async () => {
      const scene = await open();
      const bad = await scene.submit();
      const good = await scene.submit();
      await scene.reopen(() => scene.backend.spoil(bad.job_id));
      const endpoint = await scene.endpoint();
      expect((await scene.store.claim(endpoint, ROOMY))?.job.job_id).toBe(good.job_id);
      expect(await scene.store.claim(endpoint, ROOMY)).toBeNull();
      expect(await scene.store.stats()).toMatchObject({ quarantined: 1, leases_by_kind: { command: 1 } });
      const listed = (await scene.store.queueWindow({}, { cursor: 1, limit: 1 }, 10)).jobs[0];
      expect(listed).toMatchObject({ job_id: bad.job_id, state: "queued" });
      expect(listed?.quarantine).toContain("cannot be read");
      expect(await scene.eventTypes(bad.job_id)).toEqual(["job.queued", "task.queued", "job.quarantined"]);
      await refused(scene.store.job(bad.job_id), "queue_corrupt");
      expect(await scene.store.jobsAhead(good.job_id)).toBeNull();
    });

    test("an unreadable record does not keep the others from being recovered", async () => {
      const scene = await open();
      const bad = await scene.running();
      const good = await scene.running();
      await scene.reopen(() => scene.backend.spoil(bad.job.job_id));
      expect((await scene.store.openAttempts()).map(({ job }) => job.job_id)).toEqual([good.job.job_id]);
      expect((await scene.store.stats()).quarantined).toBe(1);
      expect((await scene.store.openAttempts()).map(({ job }) => job.job_id)).toEqual([good.job.job_id]);
      expect((await scene.eventTypes(bad.job.job_id)).filter((type) => type === "job.quarantined")).toHaveLength(1);
    });

    test("keeps a readable job out of the lanes until a repair, and changes nothing else of it", async () => {
      const scene = await open();
      const job = await scene.submit();
      await scene.store.quarantine(job.job_id, "the spool cannot be read");
      await scene.store.quarantine(job.job_id, "again");
      expect(await scene.store.job(job.job_id)).toMatchObject({ state: "queued", quarantine: "the spool cannot be read" });
      const endpoint = await scene.endpoint();
      expect(await scene.store.claim(endpoint, ROOMY)).toBeNull();
      const later = await scene.submit();
      expect(await scene.store.jobsAhead(later.job_id)).toBe(0);
      const { repaired, remaining } = await scene.store.repair();
      expect(repaired).toMatchObject([{ check: "quarantine", subject: job.job_id, repairable: true }]);
      expect(remaining).toEqual([]);
      expect((await scene.store.claim(endpoint, ROOMY))?.job.job_id).toBe(job.job_id);
      await refused(scene.store.quarantine("job_none", "x"), "job_not_found");
    });

    test("an open attempt of a quarantined job can still be settled, which shows that it could be read", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      await scene.store.quarantine(fence.job_id, "odd");
      expect(await scene.store.settle(fence, settlement(scene.clock, "completed"))).toMatchObject({
        state: "succeeded",
        quarantine: null,
      });
    });

    test("a repair fails a queued record that nobody can read, and says so", async () => {
      const scene = await open();
      const bad = await scene.submit();
      await scene.reopen(() => scene.backend.spoil(bad.job_id));
      const audit = await scene.store.audit();
      expect(audit.findings).toMatchObject([{ check: "record", subject: bad.job_id, repairable: true }]);
      const { repaired, remaining } = await scene.store.repair();
      expect(repaired).toEqual(audit.findings);
      expect(remaining).toMatchObject([{ check: "record", subject: bad.job_id, repairable: false }]);
      expect((await scene.store.recentJobs({}, null, 1)).jobs[0]).toMatchObject({ state: "failed" });
      expect((await scene.eventTypes(bad.job_id)).at(-1)).toBe("job.failed");
      expect((await scene.store.stats()).active).toBe(0);
    });

    test("a repair lets nobody in whose attempt is out: who takes that over shows that it can be read", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      await scene.store.quarantine(fence.job_id, "its records are of a later version");
      await scene.reopen(() => Promise.resolve());
      const { repaired, remaining } = await scene.store.repair();
      expect(repaired).toEqual([]);
      expect(remaining).toMatchObject([{ check: "quarantine", subject: fence.job_id, repairable: false }]);
      expect(remaining[0]!.detail).toContain("a worker that starts");
      expect((await scene.store.job(fence.job_id)).quarantine).toBe("its records are of a later version");
      expect((await scene.store.openAttempts()).map(({ job }) => job.quarantine)).toEqual([null]);
      expect((await scene.store.audit()).findings).toEqual([]);
    });

    test("what is out of a job that nobody can read is told, and can be ended without it", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const queued = await scene.submit();
      const fine = await scene.submit();
      expect(await scene.store.unreadable(fine.job_id)).toBeNull();
      await refused(scene.store.endUnreadable(fine.job_id, "canceled", "x"), "state_conflict");
      await scene.reopen(() => scene.backend.spoil(fence.job_id));
      await scene.reopen(() => scene.backend.spoil(queued.job_id));
      expect(await scene.store.unreadable(fence.job_id)).toMatchObject({ attempt: fence.attempt, shim: { pid: expect.any(Number) } });
      expect(await scene.store.unreadable(queued.job_id)).toEqual({ attempt: null, shim: null, process: null, scheduler_job: null });
      for (const id of [fence.job_id, queued.job_id]) await scene.store.endUnreadable(id, "canceled", "canceled; nothing of it runs");
      const states = (await scene.store.recentJobs({}, null, 10)).jobs.map(({ job_id, state }) => [job_id, state]);
      expect(states).toContainEqual([fence.job_id, "canceled"]);
      expect(states).toContainEqual([queued.job_id, "canceled"]);
      expect(await scene.store.attempt(fence.job_id)).toMatchObject({ state: "ended", outcome: { reason: "canceled" } });
      expect((await scene.eventTypes(fence.job_id)).at(-1)).toBe("job.canceled");
      expect(await scene.store.stats()).toMatchObject({ leases_by_kind: {}, active: 1 });
      // Both have ended, which changes nothing any more.
      expect(await scene.store.unreadable(fence.job_id)).toBeNull();
      await refused(scene.store.endUnreadable(fence.job_id, "failed", "x"), "state_conflict");
      expect((await scene.store.audit()).findings.map(({ check }) => check)).toEqual(["record", "record"]);
    });

    test("a repair leaves an unreadable record alone while its attempt may have processes", async () => {
      const scene = await open();
      const { fence } = await scene.claimed();
      await scene.reopen(() => scene.backend.spoil(fence.job_id));
      const { remaining } = await scene.store.repair();
      expect(remaining).toMatchObject([{ check: "record", subject: fence.job_id, repairable: false }]);
      const summary = (await scene.store.recentJobs({}, null, 1)).jobs[0];
      expect(summary?.state).toBe("leased");
      expect(summary?.quarantine).toBeString();
      expect(await scene.store.attempt(fence.job_id)).toMatchObject({ state: "claimed" });
    });
  });
}
