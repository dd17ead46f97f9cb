import { describe, expect, test } from "bun:test";
import { type OpenScene, outcome, refused, settlement } from "./scene.ts";

const KEEP = { cancel_scheduler: false };

export function cancelContract(open: OpenScene): void {
  describe("requestCancel", () => {
    test("ends a queued job at once", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const job = await scene.store.requestCancel(job_id, KEEP);
      expect(job).toMatchObject({
        state: "canceled",
        outcome: { reason: "canceled", exit_code: null },
        cancellation_request: { previous_state: "queued", cancel_scheduler: false, acknowledged_at: "2030-01-01T00:00:00.000Z" },
      });
      expect(await scene.store.job(job_id)).toEqual(job);
      expect((await scene.eventTypes(job_id)).slice(2)).toEqual(["job.cancel_requested", "job.cancel_acknowledged", "job.canceled"]);
      expect((await scene.store.tasks(job_id, { cursor: 1, limit: 1 })).items[0]?.state).toBe("canceled");
      expect(await scene.store.cancelRequests()).toEqual([]);
    });

    test("is a request while the job is leased or running, and acknowledged with its end", async () => {
      const scene = await open();
      const leased = await scene.claimed();
      const running = await scene.running();
      for (const { fence } of [leased, running]) {
        const before = (await scene.store.job(fence.job_id)).state;
        const job = await scene.store.requestCancel(fence.job_id, KEEP);
        expect(job).toMatchObject({ state: before, cancellation_request: { previous_state: before, acknowledged_at: null } });
      }
      expect(await scene.store.cancelRequests()).toEqual([leased.fence, running.fence]);
      await scene.reopen();
      expect(await scene.store.cancelRequests()).toEqual([leased.fence, running.fence]);
      scene.clock.advance(2_000);
      const residual = { ...outcome("canceled"), residual: [17] };
      const job = await scene.store.settle(running.fence, { ...settlement(scene.clock, "canceled"), outcome: residual });
      expect(job).toMatchObject({ state: "canceled", outcome: residual });
      expect(job.cancellation_request).toMatchObject({
        requested_at: "2030-01-01T00:00:00.000Z",
        acknowledged_at: "2030-01-01T00:00:02.000Z",
      });
      expect((await scene.eventTypes(running.fence.job_id)).slice(-3)).toEqual([
        "job.cancel_requested",
        "job.cancel_acknowledged",
        "job.canceled",
      ]);
      expect(await scene.store.cancelRequests()).toEqual([leased.fence]);
    });

    test("asking again changes nothing, unless the scheduler's job is now meant too", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const first = await scene.store.requestCancel(fence.job_id, KEEP);
      const events = await scene.events(fence.job_id);
      scene.clock.advance(1_000);
      expect(await scene.store.requestCancel(fence.job_id, KEEP)).toEqual(first);
      expect(await scene.events(fence.job_id)).toEqual(events);
      const more = await scene.store.requestCancel(fence.job_id, { cancel_scheduler: true });
      expect(more.cancellation_request).toEqual({ ...first.cancellation_request!, cancel_scheduler: true });
      expect(await scene.store.requestCancel(fence.job_id, KEEP)).toEqual(more);
    });

    test("changes nothing of a job that has ended", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const ended = await scene.store.settle(fence, settlement(scene.clock, "completed"));
      const events = await scene.events(fence.job_id);
      expect(await scene.store.requestCancel(fence.job_id, { cancel_scheduler: true })).toEqual(ended);
      expect(await scene.events(fence.job_id)).toEqual(events);
    });

    test("ends a delayed retry at once", async () => {
      const scene = await open();
      const { fence } = await scene.running({
        spec: { argv: ["false"], workdir: null, env: {}, login: false, timeout_seconds: null, outputs: [], retries: 1 },
      });
      await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero"));
      expect(await scene.store.requestCancel(fence.job_id, KEEP)).toMatchObject({ state: "canceled", not_before: null });
      expect(await scene.store.nextDelay()).toBeNull();
      await scene.expectSound();
    });

    test("of an unknown job is job_not_found", async () => {
      const scene = await open();
      const error = await refused(scene.store.requestCancel("job_none", KEEP), "job_not_found");
      expect(error.data).toEqual({ job_id: "job_none" });
    });
  });
}
