import type { CancellationRequest, Job, JobState } from "../../domain/job.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { verdict } from "../../domain/retry.ts";
import type { Fence, Settlement } from "../store.ts";
import type { Writing } from "./access.ts";
import { insertArtifacts } from "./artifacts.ts";
import { openRow } from "./attempt-rows.ts";
import { acknowledge } from "./cancel.ts";
import { closeSegment } from "./ingest.ts";
import { JobEdit } from "./job-edit.ts";
import { toJob } from "./job-rows.ts";
import { dropLease } from "./leases.ts";

/**
 * End an attempt with all that it brings, and move the job to where domain/retry.ts says. One savepoint, so that nobody sees an ended attempt without
 * its artifacts, or the other way round.
 */
export function settle(w: Writing, fence: Fence, settlement: Settlement): Job {
  const { row } = openRow(w, fence);
  const { outcome } = settlement;
  const edit = new JobEdit(w, row);
  for (const stream of LOG_STREAMS) closeSegment(w, edit, fence.attempt, stream, settlement.captures[stream]);
  for (const event of settlement.events) edit.event(event);
  insertArtifacts(w, edit, settlement.artifacts);
  w.sql.run(
    "UPDATE attempts SET state = 'ended', ended_at = ?, outcome = ? WHERE job = ? AND attempt = ?",
    settlement.ended_at,
    JSON.stringify(outcome),
    row.sequence,
    fence.attempt,
  );
  dropLease(w, row.sequence);

  const job = toJob(row);
  const { state, delay_seconds } = verdict(job, row.attempts - row.voided_attempts, outcome);
  edit.move(state);
  // Whoever settles it could read it after all.
  row.quarantine = null;
  if (state !== "queued") row.outcome = JSON.stringify(outcome);
  if (state === "queued" || state === "failed") row.last_error = outcome.message;
  if (delay_seconds !== null) row.not_before = w.time.in(delay_seconds * 1_000);
  if (state === "canceled" && job.cancellation_request !== null)
    acknowledgeCancel(w, edit, job.cancellation_request, outcome.residual.length);
  edit.event({
    ...conclusion(state, fence.attempt, outcome.message, delay_seconds),
    payload: payloadOf(fence, settlement, delay_seconds, row.not_before),
  });
  edit.save();
  return toJob(row);
}

function acknowledgeCancel(w: Writing, edit: JobEdit, request: CancellationRequest, residual: number): void {
  const message =
    residual === 0
      ? "Everything that the job had started is gone."
      : `What the job had started is stopped, but ${residual} of its processes could not be ended.`;
  acknowledge(w, edit, request, message);
}

function conclusion(state: JobState, attempt: number, message: string, delaySeconds: number | null) {
  switch (state) {
    case "succeeded":
      return { event_type: "job.succeeded", message: "The job succeeded." } as const;
    case "canceled":
      return { event_type: "job.canceled", message: "The job was canceled." } as const;
    case "queued":
      return {
        event_type: "job.requeued",
        level: "warning",
        message: `Attempt ${attempt} failed (${message}); the next one may start in ${delaySeconds ?? 0} s.`,
      } as const;
    default:
      return { event_type: "job.failed", level: "error", message: `The job failed: ${message}` } as const;
  }
}

const payloadOf = (fence: Fence, { outcome }: Settlement, delaySeconds: number | null, notBefore: string | null) => ({
  attempt: fence.attempt,
  reason: outcome.reason,
  exit_code: outcome.exit_code,
  signal: outcome.signal,
  ...(delaySeconds === null ? {} : { delay_seconds: delaySeconds, not_before: notBefore }),
});
