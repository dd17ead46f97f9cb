import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Job } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { command, jarvis, type OpenScene, refused, settlement } from "./scene.ts";

export function submitContract(open: OpenScene): void {
  describe("submit", () => {
    test("makes a queued job with its task and its first events", async () => {
      const scene = await open();
      const { job, existing } = await scene.store.submit(command({ metadata: { purpose: "a test" } }), "workload");
      expect(existing).toBe(false);
      expect(v.parse(Job, job)).toEqual(job);
      expect(job).toMatchObject({
        state: "queued",
        sequence: 1,
        lane: "workload",
        attempts: 0,
        outcome: null,
        metadata: { purpose: "a test" },
      });
      expect(job.created_at).toBe("2030-01-01T00:00:00.000Z");
      expect(await scene.store.job(job.job_id)).toEqual(job);
      expect(await scene.eventTypes(job.job_id)).toEqual(["job.queued", "task.queued"]);
      const tasks = await scene.store.tasks(job.job_id, { cursor: 1, limit: 10 });
      expect(tasks.items).toMatchObject([{ job_id: job.job_id, sequence: 1, name: "command", state: "queued" }]);
    });

    test("keeps the trace of the first submission under a key, which is no part of what the key stands for", async () => {
      const scene = await open();
      const trace = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate: "a=1" };
      const { job } = await scene.store.submit(command({ idempotency_key: "k" }), "workload", trace);
      expect(job.trace).toEqual(trace);
      expect((await scene.store.job(job.job_id)).trace).toEqual(trace);
      const later = { traceparent: trace.traceparent.replace("00f0", "11f0"), tracestate: null };
      expect(await scene.store.submit(command({ idempotency_key: "k" }), "workload", later)).toEqual({ job, existing: true });
      expect((await scene.store.submit(command(), "workload")).job.trace).toBeNull();
    });

    test("numbers jobs in the order of submission, of every kind and lane", async () => {
      const scene = await open();
      const { job: first } = await scene.store.submit(command(), "workload");
      const { job: second } = await scene.store.submit(jarvis(), "control");
      expect([first.sequence, second.sequence]).toEqual([1, 2]);
      expect(second).toMatchObject({ kind: "jarvis", lane: "control" });
    });

    test("keeps what was submitted exactly, whatever the text", async () => {
      const scene = await open();
      const odd = ["line\nbreak", "quote \" ' `", "déjà vu 日本語 🚀", "tab\tand\r", ""];
      const submission = command({
        spec: { ...command().spec, argv: ["echo", ...odd], env: { WORDS: odd.join("|") } },
        metadata: { nul: "a\u0000b", surrogate: "\ud800", deep: { list: [1, 2.5, null, true] } },
      });
      const { job } = await scene.store.submit(submission, "workload");
      const read = await (await scene.reopen()).job(job.job_id);
      expect(read.spec).toEqual(submission.spec);
      expect(read.metadata).toEqual(submission.metadata);
      await scene.expectSound();
    });

    test("refuses a spec and a record that are larger than they may be", async () => {
      const scene = await open();
      const { argv: _argv, ...rest } = command().spec;
      // Each of these characters takes three bytes.
      const scriptOf = (bytes: number) => command({ spec: { ...rest, script: "語".repeat(bytes / 3) } });
      await refused(scene.store.submit(scriptOf(LIMITS.specBytes), "workload"), "payload_too_large");
      const large = {
        ...scriptOf(LIMITS.specBytes - 1_024),
        metadata: { note: "x".repeat(LIMITS.jobRecordBytes - LIMITS.specBytes + 1_024) },
      };
      await refused(scene.store.submit(large, "workload"), "job_submission_refused");
      expect((await scene.store.stats()).active).toBe(0);
    });

    test("refuses one job more than may be active, and takes it when another has ended", async () => {
      const scene = await open({ activeJobsMax: 2 });
      const first = await scene.submit();
      await scene.submit();
      const error = await refused(scene.store.submit(command(), "workload"), "active_job_capacity_reached");
      expect(error.data).toMatchObject({ active: 2, active_jobs_max: 2 });
      await scene.store.requestCancel(first.job_id, { cancel_scheduler: false });
      await scene.submit();
      await scene.expectSound();
    });

    test("counts active jobs alike after a restart", async () => {
      const scene = await open({ activeJobsMax: 2 });
      await scene.submit();
      const { fence } = await (async () => {
        const claim = await scene.store.claim(await scene.endpoint(), {
          concurrency: 4,
          control_query_concurrency: 1,
          kind_concurrency: {},
          scheduler_jobs: 500,
        });
        return { fence: { job_id: claim!.job.job_id, attempt: 1 } };
      })();
      await scene.submit();
      await scene.reopen();
      await refused(scene.store.submit(command(), "workload"), "active_job_capacity_reached");
      await scene.store.settle(fence, settlement(scene.clock, "completed"));
      await scene.submit();
      expect(await scene.store.stats()).toMatchObject({ active: 2, queued_by_kind: { command: 2 } });
    });
  });
}
