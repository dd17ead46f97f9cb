import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isRelayError } from "../../../src/domain/errors.ts";
import { type JobState, OUTCOME_REASONS, type OutcomeReason } from "../../../src/domain/job.ts";
import { verdict } from "../../../src/domain/retry.ts";
import { isTerminal } from "../../../src/domain/transitions.ts";
import { report } from "./ingest.ts";
import { capture, command, expectGapless, type OpenScene, outcome, type Scene, settlement, started, withRetries } from "./scene.ts";

/** What the test knows of a job, kept by rules of its own. */
interface ModelJob {
  readonly id: string;
  readonly retries: number;
  state: JobState;
  attempts: number;
  voided: number;
  cancel: boolean;
  /** Monotonic milliseconds from which it may be claimed. */
  readyAt: number;
  stdout: number;
}

/** A step about one attempt of a job: the current one, or with `stale` one that does not exist. */
type FencedStep =
  | { readonly do: "start" | "void"; readonly job: number; readonly stale: boolean }
  | { readonly do: "ingest"; readonly job: number; readonly stale: boolean; readonly bytes: number }
  | { readonly do: "settle"; readonly job: number; readonly stale: boolean; readonly reason: OutcomeReason };

type Step =
  | FencedStep
  | { readonly do: "submit"; readonly key: number; readonly retries: number }
  | { readonly do: "claim" | "reopen" }
  | { readonly do: "cancel" | "progress"; readonly job: number }
  | { readonly do: "wait"; readonly ms: number };

const index = fc.nat({ max: 5 });
const stale = fc.boolean();
const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("submit" as const), key: fc.nat({ max: 3 }), retries: fc.nat({ max: 2 }) }) },
  { weight: 6, arbitrary: fc.constant({ do: "claim" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "reopen" as const }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom("start", "void"), job: index, stale }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("cancel", "progress"), job: index }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("ingest" as const), job: index, stale, bytes: fc.integer({ min: 1, max: 50 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("settle" as const), job: index, stale, reason: fc.constantFrom(...OUTCOME_REASONS) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 5_000 }) }) },
);

const SLOTS = 2;
const CAPACITY = { concurrency: SLOTS + 1, control_query_concurrency: 1, kind_concurrency: {}, scheduler_jobs: 500 };

/** Runs steps on a store and, beside it, on a map of jobs. */
class Twin {
  readonly jobs: ModelJob[] = [];
  readonly keys = new Map<number, { readonly job: ModelJob; readonly retries: number }>();
  #endpoint: string | null = null;

  constructor(private readonly scene: Scene) {}

  async step(step: Step): Promise<void> {
    const { store, clock } = this.scene;
    switch (step.do) {
      case "submit":
        return this.#submit(step.key, step.retries);
      case "claim":
        return this.#claim();
      case "reopen":
        await this.scene.reopen();
        return;
      case "wait":
        clock.advance(step.ms);
        return;
      case "cancel": {
        const job = this.jobs[step.job];
        if (job === undefined) return;
        if (!isTerminal(job.state)) job.cancel = true;
        if (job.state === "queued") job.state = "canceled";
        expect((await store.requestCancel(job.id, { cancel_scheduler: false })).state).toBe(job.state);
        return;
      }
      case "progress": {
        const job = this.jobs[step.job];
        if (job !== undefined) await store.recordProgress(job.id, report());
        return;
      }
      default:
        return this.#fenced(step);
    }
  }

  async #submit(key: number, retries: number): Promise<void> {
    const submission = command({ idempotency_key: `key ${key}`, ...withRetries(retries) });
    const known = this.keys.get(key);
    const result = await this.scene.store.submit(submission, "workload").catch((error: unknown) => error);
    if (known === undefined) {
      expect(result).toMatchObject({ existing: false });
      const { job } = result as { job: { job_id: string } };
      const added: ModelJob = { id: job.job_id, retries, state: "queued", attempts: 0, voided: 0, cancel: false, readyAt: 0, stdout: 0 };
      this.jobs.push(added);
      this.keys.set(key, { job: added, retries });
    } else if (known.retries === retries) {
      expect(result).toMatchObject({ existing: true, job: { job_id: known.job.id } });
    } else {
      expect(isRelayError(result, "job_submission_conflict")).toBe(true);
    }
  }

  async #claim(): Promise<void> {
    this.#endpoint ??= await this.scene.endpoint();
    const out = this.jobs.filter(({ state }) => state === "leased" || state === "running").length;
    const now = this.scene.clock.monotonic();
    const next = out < SLOTS ? this.jobs.find((job) => job.state === "queued" && job.readyAt <= now) : undefined;
    const claim = await this.scene.store.claim(this.#endpoint, CAPACITY);
    expect(claim?.job.job_id ?? null).toBe(next?.id ?? null);
    if (next === undefined) return;
    next.state = "leased";
    next.attempts += 1;
    expect(claim?.attempt.attempt).toBe(next.attempts);
  }

  async #fenced(step: FencedStep): Promise<void> {
    const job = this.jobs[step.job];
    if (job === undefined) return;
    const { store, clock } = this.scene;
    const fence = { job_id: job.id, attempt: job.attempts + (step.stale ? 1 : 0) };
    const open = !step.stale && (job.state === "leased" || job.state === "running");
    const write = async (): Promise<unknown> => {
      switch (step.do) {
        case "start":
          return store.startAttempt(fence, started(clock));
        case "void":
          return store.voidAttempt(fence, "a model");
        case "ingest":
          return store.ingest(fence, { deltas: [{ stream: "stdout", bytes: step.bytes, text: null }], truncations: [], emits: [] });
        case "settle":
          return store.settle(fence, settlement(clock, step.reason, { captures: { stdout: capture(job.stdout), stderr: capture(0) } }));
      }
    };
    const result = await write().catch((error: unknown) => error);
    if (!open) {
      expect(isRelayError(result, "attempt_fenced")).toBe(true);
    } else if (step.do === "void" && job.state === "running") {
      expect(isRelayError(result, "state_conflict")).toBe(true);
    } else {
      expect(result).not.toBeInstanceOf(Error);
      this.#apply(job, step);
    }
  }

  #apply(job: ModelJob, step: FencedStep): void {
    switch (step.do) {
      case "start":
        job.state = "running";
        break;
      case "ingest":
        job.stdout += step.bytes;
        break;
      case "void":
        job.voided += 1;
        job.state = job.cancel ? "canceled" : "queued";
        job.stdout = 0;
        break;
      case "settle": {
        const facts = { ...command(withRetries(job.retries)), cancellation_request: job.cancel ? CANCELED : null };
        const { state, delay_seconds } = verdict(facts, job.attempts - job.voided, outcome(step.reason));
        job.state = state;
        job.readyAt = delay_seconds === null ? 0 : this.scene.clock.monotonic() + delay_seconds * 1_000;
        job.stdout = 0;
      }
    }
  }

  /** The store says of every job what the model says. */
  async compare(): Promise<void> {
    for (const job of this.jobs) {
      const record = await this.scene.store.job(job.id);
      expect(record).toMatchObject({ state: job.state, attempts: job.attempts });
      expect(record.cancellation_request !== null).toBe(job.cancel);
      expectGapless(await this.scene.events(job.id));
      expect((await this.scene.store.attempts(job.id, { cursor: 1, limit: 100 })).items).toHaveLength(job.attempts);
    }
    const { active } = await this.scene.store.stats();
    expect(active).toBe(this.jobs.filter(({ state }) => !isTerminal(state)).length);
    await this.scene.expectSound();
  }
}

const CANCELED = {
  requested_at: "2030-01-01T00:00:00.000Z",
  previous_state: "running",
  cancel_scheduler: false,
  acknowledged_at: null,
} as const;

export function modelContract(open: OpenScene): void {
  describe("any sequence of operations", () => {
    test("leaves what a simple model says, and a sound queue", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(steps, { minLength: 5, maxLength: 40 }), async (sequence) => {
          const twin = new Twin(await open());
          for (const step of sequence) await twin.step(step);
          await twin.compare();
        }),
        { numRuns: 40 },
      );
    });

    test("at once leaves a sound queue, whatever the order they come in", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(steps, { minLength: 10, maxLength: 40 }), async (sequence) => {
          const scene = await open();
          const endpoint = await scene.endpoint();
          const jobs = await Promise.all(Array.from({ length: 3 }, () => scene.submit(withRetries(1))));
          await Promise.allSettled(
            sequence.map((step) =>
              anyOf(
                scene,
                step,
                endpoint,
                jobs.map((job) => job.job_id),
              ),
            ),
          );
          for (const { job_id } of jobs) expectGapless(await scene.events(job_id));
          await scene.expectSound();
        }),
        { numRuns: 25 },
      );
    });
  });
}

/** The step on one of three jobs, with the fence of a first attempt. */
function anyOf(scene: Scene, step: Step, endpoint: string, ids: readonly string[]): Promise<unknown> {
  const { store, clock } = scene;
  const jobId = ids["job" in step ? step.job % ids.length : 0]!;
  const fence = { job_id: jobId, attempt: 1 };
  switch (step.do) {
    case "submit":
      return store.submit(command({ idempotency_key: `key ${step.key}`, ...withRetries(step.retries) }), "workload");
    case "claim":
      return store.claim(endpoint, CAPACITY);
    case "start":
      return store.startAttempt(fence, started(clock));
    case "void":
      return store.voidAttempt(fence, "a model");
    case "cancel":
      return store.requestCancel(jobId, { cancel_scheduler: false });
    case "progress":
      return store.recordProgress(jobId, report());
    case "ingest":
      return store.ingest(fence, { deltas: [{ stream: "stderr", bytes: step.bytes, text: null }], truncations: [], emits: [] });
    case "settle":
      return store.settle(fence, settlement(clock, step.reason));
    default:
      return store.heartbeat(endpoint, null);
  }
}
