import { describe, expect, test } from "bun:test";
import { OUTCOME_REASONS } from "../../../src/domain/job.ts";
import { verdict } from "../../../src/domain/retry.ts";
import { artifact, capture, type OpenScene, outcome, ROOMY, refused, settlement, started, withRetries } from "./scene.ts";

export function settleContract(open: OpenScene): void {
  describe("settle", () => {
    test("brings along a start that was not recorded by itself, as startAttempt does; others than are on record are refused", async () => {
      const scene = await open();
      const { fence, job } = await scene.claimed();
      const processes = started(scene.clock);
      await scene.store.settle(fence, settlement(scene.clock, "completed", { started: processes }));
      expect(await scene.store.attempt(job.job_id)).toMatchObject({ state: "ended", ...processes });
      expect((await scene.eventTypes(job.job_id)).slice(-4)).toEqual(["job.leased", "execution.started", "job.running", "job.succeeded"]);
      const other = await scene.running();
      await scene.store.settle(other.fence, settlement(scene.clock, "completed", { started: started(scene.clock) }));
      expect((await scene.eventTypes(other.fence.job_id)).filter((type) => type === "job.running").length).toBe(1);
      const { fence: third } = await scene.running();
      await refused(
        scene.store.settle(third, settlement(scene.clock, "completed", { started: started(scene.clock, 9_000) })),
        "state_conflict",
      );
      expect((await scene.store.job(third.job_id)).state).toBe("running");
    });

    test("writes everything that the end of an attempt brings", async () => {
      const scene = await open();
      const { fence } = await scene.running();
      await scene.store.ingest(fence, { deltas: [{ stream: "stdout", bytes: 5, text: "hello" }], truncations: [], emits: [] });
      scene.clock.advance(1_000);
      const captures = { stdout: capture(9, { observed: 20, dropped: 11, truncated: "stream_quota" }), stderr: capture(0) };
      const job = await scene.store.settle(
        fence,
        settlement(scene.clock, "completed", {
          captures,
          artifacts: [artifact("artifact_1"), artifact("artifact_2", { name: 'naïve\n"name".txt', size_bytes: 0 })],
          events: [{ event_type: "execution.timeout", level: "warning", message: "it took long" }],
        }),
      );
      expect(job).toMatchObject({ state: "succeeded", outcome: outcome("completed"), leased_by: null, last_error: null });
      expect(job.updated_at).toBe("2030-01-01T00:00:01.000Z");
      expect(await scene.store.job(fence.job_id)).toEqual(job);
      expect(await scene.store.attempt(fence.job_id)).toMatchObject({
        state: "ended",
        ended_at: "2030-01-01T00:00:01.000Z",
        outcome: outcome("completed"),
      });
      expect(await scene.store.segments(fence.job_id)).toMatchObject([
        { stream: "stderr", length: 0, capture: captures.stderr },
        { stream: "stdout", length: 9, capture: captures.stdout },
      ]);
      const found = await scene.store.artifacts(fence.job_id, { cursor: 1, limit: 10 });
      expect(found.items).toMatchObject([
        { artifact_id: "artifact_1", sequence: 1, job_id: fence.job_id },
        { artifact_id: "artifact_2", sequence: 2, name: 'naïve\n"name".txt' },
      ]);
      expect((await scene.store.tasks(fence.job_id, { cursor: 1, limit: 1 })).items[0]?.state).toBe("succeeded");
      expect((await scene.store.stats()).leases_by_kind).toEqual({});
      const events = (await scene.events(fence.job_id)).slice(5);
      expect(events.map((event) => event.event_type)).toEqual([
        "stdout.delta",
        "stdout.delta",
        "stdout.truncated",
        "execution.timeout",
        "artifact.created",
        "artifact.created",
        "job.succeeded",
      ]);
      expect(events[1]?.payload).toEqual({ stream: "stdout", offset: 5, next_offset: 9 });
      expect(events[4]?.payload).toMatchObject({ artifact_id: "artifact_1", sequence: 1, size_bytes: 12, sha256: "ab".repeat(32) });
      await scene.expectSound();
    });

    test("all or nothing: an artifact id that is taken refuses the whole settlement", async () => {
      const scene = await open();
      const first = await scene.running();
      await scene.store.settle(first.fence, settlement(scene.clock, "completed", { artifacts: [artifact("artifact_1")] }));
      const second = await scene.running();
      const before = [await scene.store.job(second.fence.job_id), await scene.events(second.fence.job_id)];
      const taken = settlement(scene.clock, "completed", { artifacts: [artifact("artifact_2"), artifact("artifact_1")] });
      await refused(scene.store.settle(second.fence, taken), "state_conflict");
      expect([await scene.store.job(second.fence.job_id), await scene.events(second.fence.job_id)]).toEqual(before);
      await refused(scene.store.artifact("artifact_2"), "artifact_not_found");
      await scene.store.settle(second.fence, settlement(scene.clock, "completed", { artifacts: [artifact("artifact_2")] }));
      await scene.expectSound();
    });

    for (const reason of OUTCOME_REASONS) {
      test(`an attempt that ended as ${reason} moves the job as the rule for retries says`, async () => {
        const scene = await open();
        const { fence, job } = await scene.running(withRetries(1));
        const expected = verdict(job, 1, outcome(reason));
        const settled = await scene.store.settle(fence, settlement(scene.clock, reason));
        expect(settled.state).toBe(expected.state);
        expect(settled.outcome).toEqual(expected.state === "queued" ? null : outcome(reason));
        expect(settled.last_error).toBe(expected.state === "queued" || expected.state === "failed" ? `it ended as ${reason}` : null);
        const ending = expected.state === "queued" ? "job.requeued" : `job.${expected.state}`;
        expect((await scene.eventTypes(fence.job_id)).at(-1)).toBe(ending);
      });
    }

    test("retries are delayed longer each time, and end when they are used up", async () => {
      const scene = await open();
      const endpoint = await scene.endpoint();
      const job = await scene.submit(withRetries(8));
      const delays: (number | null)[] = [];
      for (let attempt = 1; ; attempt++) {
        const claim = await scene.store.claim(endpoint, ROOMY);
        expect(claim?.attempt.attempt).toBe(attempt);
        const settled = await scene.store.settle({ job_id: job.job_id, attempt }, settlement(scene.clock, "exit_nonzero"));
        if (settled.state === "failed") break;
        delays.push(await scene.store.nextDelay());
        scene.clock.advance(60_000);
      }
      expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60].map((seconds) => seconds * 1_000));
      expect(await scene.store.attempts(job.job_id, { cursor: 1, limit: 1 })).toMatchObject({ total: 9 });
    });

    test("a job that was to be canceled is not retried, and ends as it ended", async () => {
      const scene = await open();
      const failed = await scene.running(withRetries(3));
      await scene.store.requestCancel(failed.fence.job_id, { cancel_scheduler: false });
      expect(await scene.store.settle(failed.fence, settlement(scene.clock, "exit_nonzero"))).toMatchObject({ state: "failed" });
      const won = await scene.running();
      await scene.store.requestCancel(won.fence.job_id, { cancel_scheduler: false });
      const job = await scene.store.settle(won.fence, settlement(scene.clock, "completed"));
      expect(job).toMatchObject({ state: "succeeded", cancellation_request: { acknowledged_at: null } });
    });

    test("a job that was put aside while it ran is so no longer", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      await scene.store.quarantine(fence.job_id, "a later version");
      expect((await scene.store.stats()).quarantined).toBe(1);
      expect((await scene.store.openAttempts()).map(({ attempt }) => attempt.attempt)).toEqual([1]);
      await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero"));
      expect((await scene.store.stats()).quarantined).toBe(0);
      scene.clock.advance(60_000);
      expect((await scene.store.claim(await scene.endpoint(), ROOMY))?.attempt.attempt).toBe(2);
      await scene.expectSound();
    });

    test("bytes that had been ingested are kept, whatever the settlement counts, and the stream is not complete", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      await scene.store.ingest(fence, { deltas: [{ stream: "stdout", bytes: 10, text: null }], truncations: [], emits: [] });
      const captures = { stdout: capture(4, { observed: 6, dropped: 2, truncated: "disk_full" }), stderr: capture(0) };
      await scene.store.settle(fence, settlement(scene.clock, "outcome_unknown", { captures }));
      const kept = { observed: 12, kept: 10, dropped: 2, truncated: "disk_full", complete: false };
      const stdout = async () => (await scene.store.segments(fence.job_id)).filter((segment) => segment.stream === "stdout");
      expect(await stdout()).toMatchObject([{ attempt: 1, length: 10, capture: kept }]);
      scene.clock.advance(60_000);
      await scene.store.claim(await scene.endpoint(), ROOMY);
      expect((await stdout())[1]).toMatchObject({ attempt: 2, base: 10 });
      await scene.expectSound();
    });

    test("output of a later attempt begins where that of the earlier ones ended", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(2));
      await scene.store.settle(fence, settlement(scene.clock, "signaled", { captures: { stdout: capture(100), stderr: capture(7) } }));
      scene.clock.advance(60_000);
      const endpoint = await scene.endpoint();
      await scene.store.claim(endpoint, ROOMY);
      await scene.store.voidAttempt({ ...fence, attempt: 2 }, "never started");
      await scene.store.claim(endpoint, ROOMY);
      const third = { ...fence, attempt: 3 };
      await scene.store.ingest(third, { deltas: [{ stream: "stdout", bytes: 4, text: "more" }], truncations: [], emits: [] });
      const stdout = (await scene.store.segments(fence.job_id)).filter((segment) => segment.stream === "stdout");
      expect(stdout.map(({ attempt, base, length }) => [attempt, base, length])).toEqual([
        [1, 0, 100],
        [2, 100, 0],
        [3, 100, 4],
      ]);
      expect((await scene.events(fence.job_id)).at(-1)?.payload).toEqual({ stream: "stdout", offset: 100, next_offset: 104, text: "more" });
      await scene.expectSound();
    });

    test("artifacts of later attempts are numbered on", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero", { artifacts: [artifact("artifact_1")] }));
      scene.clock.advance(1_000);
      await scene.store.claim(await scene.endpoint(), ROOMY);
      await scene.store.settle({ ...fence, attempt: 2 }, settlement(scene.clock, "completed", { artifacts: [artifact("artifact_2")] }));
      const { items } = await scene.store.artifacts(fence.job_id, { cursor: 1, limit: 10 });
      expect(items.map(({ artifact_id, sequence }) => [artifact_id, sequence])).toEqual([
        ["artifact_1", 1],
        ["artifact_2", 2],
      ]);
    });
  });
}
