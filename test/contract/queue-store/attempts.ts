import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Attempt } from "../../../src/domain/attempt.ts";
import { identity, type OpenScene, ROOMY, refused, settlement, started, withRetries } from "./scene.ts";

const ALL = { cursor: 1, limit: 100 };

export function attemptContract(open: OpenScene): void {
  describe("startAttempt", () => {
    test("makes job, task and attempt running, and remembers the processes", async () => {
      const scene = await open();
      const { fence, job } = await scene.claimed();
      const processes = started(scene.clock);
      const running = await scene.store.startAttempt(fence, processes);
      expect(running).toMatchObject({ job_id: job.job_id, state: "running", attempts: 1 });
      expect(await scene.store.attempt(job.job_id)).toMatchObject({ state: "running", ...processes });
      expect((await scene.store.tasks(job.job_id, { cursor: 1, limit: 1 })).items[0]?.state).toBe("running");
      expect((await scene.eventTypes(job.job_id)).slice(-3)).toEqual(["job.leased", "execution.started", "job.running"]);
    });

    test("repeating it with the same processes changes nothing; others are refused", async () => {
      const scene = await open();
      const { fence, job } = await scene.claimed();
      const processes = started(scene.clock);
      const running = await scene.store.startAttempt(fence, processes);
      const events = await scene.events(job.job_id);
      expect(await scene.store.startAttempt(fence, { ...processes, started_at: "2031-01-01T00:00:00.000Z" })).toEqual(running);
      expect(await scene.events(job.job_id)).toEqual(events);
      await refused(scene.store.startAttempt(fence, started(scene.clock, 9_000)), "state_conflict");
      const recycled = { ...processes, process: { ...processes.process, start_time: processes.process.start_time + 1 } };
      await refused(scene.store.startAttempt(fence, recycled), "state_conflict");
      expect(await scene.store.attempt(job.job_id)).toMatchObject(processes);
    });
  });

  describe("voidAttempt", () => {
    test("queues the job again at its old place, using up no retry", async () => {
      const scene = await open();
      const { fence, lease } = await scene.claimed(withRetries(1));
      const behind = await scene.submit();
      const job = await scene.store.voidAttempt(fence, "the worker died first");
      expect(job).toMatchObject({ state: "queued", attempts: 1, leased_by: null, not_before: null, last_error: null });
      expect(await scene.store.attempt(fence.job_id)).toMatchObject({ state: "void", outcome: null });
      expect(await scene.store.heartbeat(lease.endpoint_id, null)).toEqual([]);
      expect((await scene.events(fence.job_id)).at(-1)).toMatchObject({
        event_type: "job.requeued",
        payload: { attempt: 1, reason: "the worker died first" },
      });
      const next = await scene.store.claim(lease.endpoint_id, ROOMY);
      expect(next).toMatchObject({ job: { job_id: fence.job_id }, attempt: { attempt: 2 } });
      const retried = await scene.store.settle({ ...fence, attempt: 2 }, settlement(scene.clock, "exit_nonzero"));
      expect(retried.state).toBe("queued");
      expect((await scene.store.claim(lease.endpoint_id, ROOMY))?.job.job_id).toBe(behind.job_id);
    });

    test("is not for an attempt that has started", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      await refused(scene.store.voidAttempt(fence, "too late"), "state_conflict");
      expect((await scene.store.job(fence.job_id)).state).toBe("running");
    });

    test("cancels the job where that was asked for", async () => {
      const scene = await open();
      const { fence } = await scene.claimed();
      await scene.store.requestCancel(fence.job_id, { cancel_scheduler: false });
      const job = await scene.store.voidAttempt(fence, "canceled before its start");
      expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled" } });
      expect(job.cancellation_request?.acknowledged_at).toBe("2030-01-01T00:00:00.000Z");
      expect((await scene.eventTypes(fence.job_id)).slice(-2)).toEqual(["job.cancel_acknowledged", "job.canceled"]);
    });
  });

  describe("fences", () => {
    test("a stale attempt number is refused by every write about an attempt", async () => {
      const scene = await open();
      const { fence, lease } = await scene.claimed(withRetries(1));
      await scene.store.voidAttempt(fence, "once");
      await scene.store.claim(lease.endpoint_id, ROOMY);
      const before = await scene.store.job(fence.job_id);
      const events = await scene.events(fence.job_id);
      for (const stale of [fence, { ...fence, attempt: 3 }, { ...fence, attempt: 0 }]) {
        const error = await refused(scene.store.startAttempt(stale, started(scene.clock)), "attempt_fenced");
        expect(error.data).toMatchObject({ attempt: stale.attempt, current_attempt: 2 });
        await refused(scene.store.voidAttempt(stale, "x"), "attempt_fenced");
        await refused(scene.store.settle(stale, settlement(scene.clock, "completed")), "attempt_fenced");
        await refused(scene.store.ingest(stale, { deltas: [], truncations: [], emits: [] }), "attempt_fenced");
        await refused(scene.store.takeOverLease(stale, lease.endpoint_id), "attempt_fenced");
      }
      expect(await scene.store.job(fence.job_id)).toEqual(before);
      expect(await scene.events(fence.job_id)).toEqual(events);
    });

    test("an attempt that has ended is refused, so a late report never overwrites what came after", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      const ended = await scene.store.settle(fence, settlement(scene.clock, "completed"));
      await refused(scene.store.settle(fence, settlement(scene.clock, "outcome_unknown")), "attempt_fenced");
      await refused(scene.store.startAttempt(fence, started(scene.clock)), "attempt_fenced");
      await refused(scene.store.voidAttempt(fence, "x"), "attempt_fenced");
      await refused(
        scene.store.ingest(fence, { deltas: [{ stream: "stdout", bytes: 1, text: "x" }], truncations: [], emits: [] }),
        "attempt_fenced",
      );
      expect(await scene.store.job(fence.job_id)).toEqual(ended);
    });

    test("unknown jobs are job_not_found", async () => {
      const scene = await open();
      const fence = { job_id: "job_none", attempt: 1 };
      await refused(scene.store.startAttempt(fence, started(scene.clock)), "job_not_found");
      await refused(scene.store.voidAttempt(fence, "x"), "job_not_found");
      await refused(scene.store.settle(fence, settlement(scene.clock, "completed")), "job_not_found");
      await refused(scene.store.ingest(fence, { deltas: [], truncations: [], emits: [] }), "job_not_found");
      await refused(scene.store.emitOffsets(fence), "job_not_found");
      await refused(scene.store.segments("job_none"), "job_not_found");
      await refused(scene.store.attempt("job_none"), "job_not_found");
      await refused(scene.store.attempts("job_none", ALL), "job_not_found");
      await refused(scene.store.takeOverLease(fence, await scene.endpoint()), "job_not_found");
    });
  });

  describe("attempts", () => {
    test("are numbered from 1 and kept, whatever became of them", async () => {
      const scene = await open();
      const { fence, lease } = await scene.claimed();
      expect(await scene.store.attempt(fence.job_id, 2)).toBeNull();
      await scene.store.voidAttempt(fence, "first");
      await scene.store.claim(lease.endpoint_id, ROOMY);
      await scene.store.startAttempt({ ...fence, attempt: 2 }, started(scene.clock));
      await scene.store.settle({ ...fence, attempt: 2 }, settlement(scene.clock, "signaled"));
      const { items: attempts, ...page } = await scene.store.attempts(fence.job_id, ALL);
      expect(page).toEqual({ ...ALL, next_cursor: 3, total: 2 });
      for (const attempt of attempts) expect(v.parse(Attempt, attempt)).toEqual(attempt);
      expect(attempts).toMatchObject([
        { attempt: 1, state: "void", outcome: null },
        { attempt: 2, state: "ended", outcome: { reason: "signaled" }, process: identity(2_000) },
      ]);
      expect(await scene.store.attempt(fence.job_id, 1)).toEqual(attempts[0]!);
      expect(await scene.store.attempt(fence.job_id)).toEqual(attempts[1]!);
      const pages = [1, 2, 3].map((cursor) => scene.store.attempts(fence.job_id, { cursor, limit: 1 }));
      expect((await Promise.all(pages)).map(({ items, next_cursor }) => [items, next_cursor])).toEqual([
        [[attempts[0]!], 2],
        [[attempts[1]!], 3],
        [[], 3],
      ]);
    });

    test("of a job that was never claimed there are none", async () => {
      const scene = await open();
      const job = await scene.submit();
      expect(await scene.store.attempt(job.job_id)).toBeNull();
      expect(await scene.store.attempts(job.job_id, ALL)).toEqual({ items: [], ...ALL, next_cursor: 1, total: 0 });
    });

    test("openAttempts finds what a restarted worker has to recover, and its lease can be taken over", async () => {
      const scene = await open();
      const claimed = await scene.claimed();
      const running = await scene.running();
      const ended = await scene.running();
      await scene.store.settle(ended.fence, settlement(scene.clock, "completed"));
      await scene.submit();
      await scene.reopen();
      const found = await scene.store.openAttempts();
      expect(found.map(({ job, attempt }) => [job.job_id, job.state, attempt.state])).toEqual([
        [claimed.job.job_id, "leased", "claimed"],
        [running.job.job_id, "running", "running"],
      ]);
      const next = await scene.endpoint();
      const lease = await scene.store.takeOverLease(running.fence, next);
      expect(lease).toMatchObject({ job_id: running.job.job_id, endpoint_id: next, attempt: 1 });
      expect(await scene.store.heartbeat(next, null)).toMatchObject([{ job_id: running.job.job_id }]);
      expect(await scene.store.heartbeat(claimed.lease.endpoint_id, null)).toMatchObject([{ job_id: claimed.job.job_id }]);
      expect((await scene.store.job(running.job.job_id)).leased_by).toBe(next);
      await scene.expectSound();
    });

    test("a lease is taken over only by an endpoint that is on record", async () => {
      const scene = await open();
      const { fence, lease } = await scene.claimed();
      await refused(scene.store.takeOverLease(fence, "endpoint_nobody"), "not_found");
      expect((await scene.store.job(fence.job_id)).leased_by).toBe(lease.endpoint_id);
    });
  });
}
