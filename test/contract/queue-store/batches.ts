import { describe, expect, test } from "bun:test";
import { command, type OpenScene, refused, settlement } from "./scene.ts";

export function batchContract(open: OpenScene): void {
  describe("concurrent writes", () => {
    test("one that is refused harms none of those beside it", async () => {
      const scene = await open();
      const { fence } = await scene.claimed();
      const results = await Promise.allSettled([
        scene.store.submit(command({ idempotency_key: "k" }), "workload"),
        scene.store.submit(command({ idempotency_key: "k", metadata: { other: true } }), "workload"),
        scene.store.settle({ ...fence, attempt: 9 }, settlement(scene.clock, "completed")),
        scene.store.appendEvents(fence.job_id, [{ event_type: "execution.adopted", message: "kept" }]),
        scene.store.quarantine("job_none", "x"),
        scene.store.submit(command(), "workload"),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled", "rejected", "fulfilled"]);
      await scene.reopen();
      expect((await scene.store.stats()).active).toBe(3);
      expect((await scene.events(fence.job_id)).at(-1)?.message).toBe("kept");
      await scene.expectSound();
    });

    test("the bound of active jobs holds within a batch", async () => {
      const scene = await open({ activeJobsMax: 3 });
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => scene.store.submit(command(), "workload")));
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
      expect((await scene.store.stats()).active).toBe(3);
    });

    test("what was answered is there after the store was closed, and closing commits what was queued", async () => {
      const scene = await open();
      const pending = Array.from({ length: 30 }, () => scene.store.submit(command(), "workload"));
      await scene.reopen();
      const jobs = await Promise.all(pending);
      for (const { job } of jobs) expect(await scene.store.job(job.job_id)).toEqual(job);
    });

    test("after close every call is refused, and closing again is harmless", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const { store } = scene;
      await store.close();
      await store.close();
      await refused(store.submit(command(), "workload"), "shutting_down");
      await refused(store.job(job_id), "shutting_down");
      await refused(store.audit(), "shutting_down");
      await refused(store.repair(), "shutting_down");
      await scene.reopen();
      expect((await scene.store.job(job_id)).job_id).toBe(job_id);
    });
  });

  describe("subscribe", () => {
    test("calls after the commit, with what was committed to be seen", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      const seen: Promise<number>[] = [];
      const stop = scene.store.subscribe(`job:${job_id}`, () => {
        seen.push(scene.store.events(job_id, { cursor: 1, limit: 100 }).then((page) => page.total));
      });
      await scene.store.appendEvents(job_id, [{ event_type: "execution.adopted", message: "one" }]);
      expect(await Promise.all(seen)).toEqual([3]);
      await Promise.all([1, 2, 3].map((n) => scene.store.appendEvents(job_id, [{ event_type: "execution.adopted", message: `${n}` }])));
      expect((await Promise.all(seen)).at(-1)).toBe(6);
      stop();
      const calls = seen.length;
      await scene.store.appendEvents(job_id, [{ event_type: "execution.adopted", message: "unheard" }]);
      expect(seen).toHaveLength(calls);
    });

    test("a refused write wakes nobody, and one job's write wakes no follower of another", async () => {
      const scene = await open();
      const one = await scene.submit();
      const two = await scene.submit();
      let calls = 0;
      scene.store.subscribe(`job:${one.job_id}`, () => {
        calls += 1;
      });
      await refused(scene.store.settle({ job_id: one.job_id, attempt: 1 }, settlement(scene.clock, "completed")), "attempt_fenced");
      await scene.store.appendEvents(two.job_id, [{ event_type: "execution.adopted", message: "elsewhere" }]);
      expect(calls).toBe(0);
    });

    test("the topics of queue and lanes tell of everything that may make a job claimable or cancelable", async () => {
      const scene = await open();
      let calls = 0;
      for (const topic of ["queue", "ready:workload"] as const) {
        scene.store.subscribe(topic, () => {
          calls += 1;
        });
      }
      const wakes = async (what: () => Promise<unknown>): Promise<boolean> => {
        const before = calls;
        await what();
        return calls > before;
      };
      const first = await scene.claimed();
      expect(await wakes(() => scene.submit())).toBe(true);
      expect(await wakes(() => scene.store.requestCancel(first.fence.job_id, { cancel_scheduler: false }))).toBe(true);
      expect(await wakes(() => scene.store.voidAttempt(first.fence, "x"))).toBe(true);
      const queued = await scene.submit();
      expect(await wakes(() => scene.store.quarantine(queued.job_id, "x"))).toBe(true);
      expect(await wakes(() => scene.store.repair())).toBe(true);
      expect(await wakes(() => scene.store.appendEvents(queued.job_id, [{ event_type: "execution.adopted", message: "x" }]))).toBe(false);
    });
  });
}
