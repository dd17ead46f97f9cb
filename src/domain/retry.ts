import type { Job, JobState, Outcome, OutcomeReason } from "./job.ts";

const RETRYABLE: ReadonlySet<OutcomeReason> = new Set<OutcomeReason>([
  "exit_nonzero",
  "signaled",
  "timeout",
  "spawn_failed",
  "env_setup_failed",
  "output_missing",
  "outcome_unknown",
]);

const FIRST_DELAY_SECONDS = 1;
export const LAST_DELAY_SECONDS = 60;

/** What becomes of a job whose attempt ended. `delay_seconds` is set when it is queued again. */
export interface Verdict {
  readonly state: Extract<JobState, "queued" | "succeeded" | "failed" | "canceled">;
  readonly delay_seconds: number | null;
}

/**
 * Decide the state after an attempt ended.
 *
 * @param job the job as it is when the attempt settles, cancellation request included
 * @param spent attempts that were started, the ended one included; voided ones do not count
 */
export function verdict(job: Pick<Job, "spec" | "cancellation_request">, spent: number, outcome: Outcome): Verdict {
  if (outcome.reason === "completed") return { state: "succeeded", delay_seconds: null };
  if (outcome.reason === "canceled") return { state: "canceled", delay_seconds: null };
  const retries = "retries" in job.spec ? job.spec.retries : 0;
  // Nothing is started beside what could not be ended.
  if (outcome.residual.length > 0 || job.cancellation_request !== null || spent > retries || !RETRYABLE.has(outcome.reason)) {
    return { state: "failed", delay_seconds: null };
  }
  return { state: "queued", delay_seconds: Math.min(LAST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (spent - 1)) };
}
