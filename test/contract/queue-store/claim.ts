import { describe, expect, test } from "bun:test";
import type { Capacity } from "../../../src/domain/endpoint.ts";
import { command, jarvis, type OpenScene, ROOMY, refused, settlement, withRetries } from "./scene.ts";

const slots = (concurrency: number, control: number, kinds: Capacity["kind_concurrency"] = {}, schedulerJobs = 500): Capacity => ({
  concurrency,
  control_query_concurrency: control,
  kind_concurrency: kinds,
  scheduler_jobs: schedulerJobs,
});

export function claimContract(open: OpenScene): void {
  describe("claim", () => {
    test("takes jobs in the order of submission, and null when there is none", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      expect(await scene.store.claim(endpoint, ROOMY)).toBeNull();
      const jobs = [await scene.submit(), await scene.submit(), await scene.submit()];
      for (const job of jobs) expect((await scene.store.claim(endpoint, ROOMY))?.job.job_id).toBe(job.job_id);
      expect(await scene.store.claim(endpoint, ROOMY)).toBeNull();
    });

    test("gives the job, its attempt and its lease in one piece", async () => {
      const scene = await open({ leaseSeconds: 90 });
      const { job, attempt, lease, fence } = await scene.claimed();
      expect(job).toMatchObject({ state: "leased", attempts: 1, leased_by: lease.endpoint_id });
      expect(attempt).toMatchObject({ job_id: job.job_id, attempt: 1, state: "claimed", shim: null, process: null, ended_at: null });
      expect(lease).toMatchObject({ job_id: job.job_id, attempt: 1, kind: "command", lane: "workload" });
      expect(Date.parse(lease.expires_at) - Date.parse(lease.acquired_at)).toBe(90_000);
      expect(await scene.store.job(job.job_id)).toEqual(job);
      expect(await scene.store.attempt(job.job_id)).toEqual(attempt);
      expect(await scene.store.heartbeat(lease.endpoint_id, null)).toEqual([lease]);
      expect(await scene.store.segments(job.job_id)).toMatchObject([
        { attempt: 1, stream: "stderr", base: 0, length: 0, capture: null },
        { attempt: 1, stream: "stdout", base: 0, length: 0, capture: null },
      ]);
      const events = await scene.events(job.job_id);
      expect(events.at(-1)).toMatchObject({ event_type: "job.leased", payload: { attempt: 1, endpoint_id: lease.endpoint_id } });
      expect(fence.attempt).toBe(1);
    });

    test("concurrent claims never take one job twice", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      for (let i = 0; i < 20; i++) await scene.submit();
      const claims = await Promise.all(Array.from({ length: 30 }, () => scene.store.claim(endpoint, ROOMY)));
      const taken = claims.flatMap((claim) => (claim === null ? [] : [claim.job.job_id]));
      expect(taken).toHaveLength(20);
      expect(new Set(taken).size).toBe(20);
    });

    test("workload leaves the control lane its slots, and the other way round", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      const capacity = slots(3, 1);
      for (let i = 0; i < 4; i++) await scene.submit({}, "workload");
      const lanes = async () => (await scene.store.claim(endpoint, capacity))?.job.lane ?? null;
      expect([await lanes(), await lanes(), await lanes()]).toEqual(["workload", "workload", null]);
      await scene.submit({}, "control");
      await scene.submit({}, "control");
      expect([await lanes(), await lanes()]).toEqual(["control", null]);
      expect((await scene.store.stats()).leases_by_lane).toEqual({ workload: 2, control: 1 });
    });

    test("a full kind does not stand in the way of another", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      for (let i = 0; i < 3; i++) await scene.submit();
      const { job: other } = await scene.store.submit(jarvis(), "workload");
      const capacity = slots(5, 1, { command: 1 });
      expect((await scene.store.claim(endpoint, capacity))?.job.kind).toBe("command");
      expect((await scene.store.claim(endpoint, capacity))?.job.job_id).toBe(other.job_id);
      expect(await scene.store.claim(endpoint, capacity)).toBeNull();
      expect((await scene.store.stats()).leases_by_kind).toEqual({ command: 1, jarvis: 1 });
    });

    test("a bound of a kind counts both lanes together", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      await scene.submit({}, "control");
      await scene.submit({}, "workload");
      const capacity = slots(4, 2, { command: 1 });
      expect(await scene.store.claim(endpoint, capacity)).not.toBeNull();
      expect(await scene.store.claim(endpoint, capacity)).toBeNull();
    });

    test("the scheduler's lane has slots of its own, and no bound of a kind counts there", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      for (const lane of ["scheduler", "scheduler", "scheduler", "workload", "workload"] as const) await scene.submit({}, lane);
      const capacity = slots(4, 1, { command: 1 }, 2);
      const lanes = async () => (await scene.store.claim(endpoint, capacity))?.job.lane ?? null;
      expect([await lanes(), await lanes(), await lanes(), await lanes()]).toEqual(["scheduler", "scheduler", "workload", null]);
      expect((await scene.store.stats()).leases_by_lane).toEqual({ scheduler: 2, workload: 1 });
      expect(await scene.store.claim(endpoint, slots(4, 1, {}, 0))).toMatchObject({ job: { lane: "workload" } });
      expect(await scene.store.claim(endpoint, slots(4, 1, {}, 2))).toBeNull();
    });

    test("the lowest sequence of all kinds comes first", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      const { job: first } = await scene.store.submit(jarvis(), "workload");
      const second = await scene.submit({}, "control");
      const third = await scene.submit();
      for (const job of [first, second, third]) expect((await scene.store.claim(endpoint, ROOMY))?.job.job_id).toBe(job.job_id);
    });

    test("an ended attempt frees its slot", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      await scene.submit();
      await scene.submit();
      const capacity = slots(2, 1);
      const claim = await scene.store.claim(endpoint, capacity);
      expect(await scene.store.claim(endpoint, capacity)).toBeNull();
      await scene.store.settle({ job_id: claim!.job.job_id, attempt: 1 }, settlement(scene.clock, "completed"));
      expect(await scene.store.claim(endpoint, capacity)).not.toBeNull();
    });

    test("a delayed retry waits until its time, and then has its old place", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      const early = await scene.submit(withRetries(1));
      const claim = await scene.store.claim(endpoint, ROOMY);
      expect(await scene.store.nextDelay()).toBeNull();
      const again = await scene.store.settle({ job_id: claim!.job.job_id, attempt: 1 }, settlement(scene.clock, "exit_nonzero"));
      expect(again).toMatchObject({ state: "queued", not_before: "2030-01-01T00:00:01.000Z" });
      expect(await scene.store.nextDelay()).toBe(1_000);
      const late = await scene.submit();
      expect(await scene.store.jobsAhead(late.job_id)).toBe(1);
      scene.clock.advance(999);
      expect(await scene.store.nextDelay()).toBe(1);
      expect((await scene.store.claim(endpoint, ROOMY))?.job.job_id).toBe(late.job_id);
      expect(await scene.store.claim(endpoint, ROOMY)).toBeNull();
      scene.clock.advance(1);
      expect(await scene.store.nextDelay()).toBe(0);
      const third = await scene.submit();
      const retried = await scene.store.claim(endpoint, ROOMY);
      expect(retried).toMatchObject({ job: { job_id: early.job_id, not_before: null, attempts: 2 }, attempt: { attempt: 2 } });
      expect((await scene.store.claim(endpoint, ROOMY))?.job.job_id).toBe(third.job_id);
      expect(await scene.store.nextDelay()).toBeNull();
    });

    test("only a registered endpoint that has not stopped may claim", async () => {
      const scene = await open();
      await scene.submit();
      await refused(scene.store.claim("endpoint_nobody", ROOMY), "not_found");
      const endpoint = await scene.endpoint();
      await scene.store.stopEndpoint(endpoint);
      await refused(scene.store.claim(endpoint, ROOMY), "state_conflict");
      expect((await scene.store.stats()).leases_by_kind).toEqual({});
    });

    test("does not look at what is canceled", async () => {
      const scene = await open();
      const job = await scene.submit();
      await scene.store.requestCancel(job.job_id, { cancel_scheduler: false });
      expect(await scene.store.claim(await scene.endpoint(), ROOMY)).toBeNull();
      expect((await scene.store.submit(command(), "workload")).job.state).toBe("queued");
    });
  });
}
