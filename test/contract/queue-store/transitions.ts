import { describe, expect, test } from "bun:test";
import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { JOB_STATES, type JobState } from "../../../src/domain/job.ts";
import { JOB_TRANSITIONS } from "../../../src/domain/transitions.ts";
import type { Fence } from "../../../src/queue/store.ts";
import { ingest } from "./inputs.ts";
import { type OpenScene, ROOMY, type Scene, settlement, started, withRetries } from "./scene.ts";

type Result = JobState | ErrorCode;

/** Ways to bring a fresh job into each state. The job has one retry. */
const REACH: Readonly<Record<JobState, (scene: Scene) => Promise<Fence>>> = {
  queued: async (scene) => ({ job_id: (await scene.submit(withRetries(1))).job_id, attempt: 0 }),
  leased: async (scene) => (await scene.claimed(withRetries(1))).fence,
  running: async (scene) => (await scene.running(withRetries(1))).fence,
  succeeded: (scene) => ended(scene, "completed"),
  failed: (scene) => ended(scene, "engine_failed"),
  canceled: (scene) => ended(scene, "canceled"),
};

async function ended(scene: Scene, reason: "completed" | "engine_failed" | "canceled"): Promise<Fence> {
  const { fence } = await scene.running(withRetries(1));
  await scene.store.settle(fence, settlement(scene.clock, reason));
  return fence;
}

/** Everything that may ask for another state. */
const OPERATIONS = {
  claim: async (scene: Scene) => void (await scene.store.claim(await scene.endpoint(), ROOMY)),
  start: (scene: Scene, fence: Fence) => scene.store.startAttempt(fence, started(scene.clock)),
  void: (scene: Scene, fence: Fence) => scene.store.voidAttempt(fence, "a test"),
  "settle completed": (scene: Scene, fence: Fence) => scene.store.settle(fence, settlement(scene.clock, "completed")),
  "settle exit_nonzero": (scene: Scene, fence: Fence) => scene.store.settle(fence, settlement(scene.clock, "exit_nonzero")),
  "settle engine_failed": (scene: Scene, fence: Fence) => scene.store.settle(fence, settlement(scene.clock, "engine_failed")),
  "settle canceled": (scene: Scene, fence: Fence) => scene.store.settle(fence, settlement(scene.clock, "canceled")),
  cancel: (scene: Scene, fence: Fence) => scene.store.requestCancel(fence.job_id, { cancel_scheduler: false }),
} as const;

type Operation = keyof typeof OPERATIONS;

const OVER = {
  claim: "same",
  start: "attempt_fenced",
  void: "attempt_fenced",
  "settle completed": "attempt_fenced",
  "settle exit_nonzero": "attempt_fenced",
  "settle engine_failed": "attempt_fenced",
  "settle canceled": "attempt_fenced",
  cancel: "same",
} as const;

/** What each operation does to a job in each state: the state after it, or the code that it is refused with. */
const EXPECTED: Readonly<Record<JobState, Readonly<Record<Operation, Result | "same">>>> = {
  queued: { ...OVER, claim: "leased", cancel: "canceled" },
  leased: {
    claim: "same",
    start: "running",
    void: "queued",
    "settle completed": "succeeded",
    "settle exit_nonzero": "queued",
    "settle engine_failed": "failed",
    "settle canceled": "canceled",
    cancel: "same",
  },
  running: {
    claim: "same",
    start: "same",
    void: "state_conflict",
    "settle completed": "succeeded",
    "settle exit_nonzero": "queued",
    "settle engine_failed": "failed",
    "settle canceled": "canceled",
    cancel: "same",
  },
  succeeded: OVER,
  failed: OVER,
  canceled: OVER,
};

export function transitionContract(open: OpenScene): void {
  describe("transitions", () => {
    const seen = new Set<string>();
    for (const from of JOB_STATES) {
      for (const operation of Object.keys(OPERATIONS) as Operation[]) {
        const expected = EXPECTED[from][operation];
        test(`${operation} of a ${from} job: ${expected}`, async () => {
          const scene = await open();
          const fence = await REACH[from](scene);
          const before = [await scene.store.job(fence.job_id), await scene.events(fence.job_id)] as const;
          expect(before[0].state).toBe(from);
          let result: Result;
          try {
            await OPERATIONS[operation](scene, fence);
            result = (await scene.store.job(fence.job_id)).state;
          } catch (error) {
            if (!isRelayError(error)) throw error;
            result = error.code;
            expect([await scene.store.job(fence.job_id), await scene.events(fence.job_id)]).toEqual([...before]);
          }
          expect(result).toBe(expected === "same" ? from : expected);
          const after = (await scene.store.job(fence.job_id)).state;
          if (after !== from) {
            seen.add(`${from}>${after}`);
            expect(JOB_TRANSITIONS.map((t) => `${t.from}>${t.to}`)).toContain(`${from}>${after}`);
          }
          await scene.expectSound();
        });
      }
    }

    test("a record that cannot be run fails", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      await scene.reopen(() => scene.backend.spoil(job_id));
      await scene.store.repair();
      const listed = await scene.store.recentJobs({}, null, 1);
      expect(listed.jobs[0]?.state).toBe("failed");
      seen.add("queued>failed");
    });

    test("what is recorded with its result has succeeded", async () => {
      const scene = await open();
      const { job } = await scene.store.recordInput(...ingest("one"));
      expect(await scene.eventTypes(job.job_id)).toEqual(["job.queued", "task.queued", "artifact.created", "job.succeeded"]);
      expect(job.state).toBe("succeeded");
      seen.add("queued>succeeded");
    });

    test("together these have made every change that the table has", () => {
      expect([...seen].sort()).toEqual(JOB_TRANSITIONS.map(({ from, to }) => `${from}>${to}`).sort());
    });
  });
}
