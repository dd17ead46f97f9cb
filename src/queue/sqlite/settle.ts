import type { CancellationRequest, Job, JobState, Outcome } from "../../domain/job.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { verdict } from "../../domain/retry.ts";
import type { Fence, Settlement } from "../store.ts";
import type { Writing } from "./access.ts";
import { insertArtifacts } from "./artifacts.ts";
import { openRow } from "./attempt-rows.ts";
import { startAttempt } from "./attempt-start.ts";
import { acknowledge } from "./cancel.ts";
import { closeSegment } from "./ingest.ts";
import { JobEdit } from "./job-edit.ts";
import { type JobRow, toJob } from "./job-rows.ts";
import { dropLease } from "./leases.ts";
import { parsedOrNull } from "./record-json.ts";
import { nothingIntended } from "./scheduler-jobs.ts";
import { closeSchedulerTask, conflict, type SchedulerRow, schedulerRow } from "./scheduler-rows.ts";

/**
 * End an attempt with all that it brings, and move the job to where domain/retry.ts says. One savepoint, so that nobody sees an ended attempt without
 * its artifacts, or the other way round.
 *
 * @param retain leave the attempt's job of a scheduler to go on; refused (state_conflict) unless the job was asked to be canceled without it
 */
export function settle(w: Writing, fence: Fence, settlement: Settlement, { retain } = { retain: false }): Job {
  if (settlement.started !== undefined) startAttempt(w, fence, settlement.started);
  const { row } = openRow(w, fence);
  const { outcome } = settlement;
  const retained = retain ? retainScheduled(w, fence, row, outcome) : null;
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
  closeSchedulerTask(w, row.sequence, fence.attempt, outcome.reason);

  const job = toJob(row);
  const { state, delay_seconds } = verdict(job, row.attempts - row.voided_attempts, outcome);
  edit.move(state);
  // Whoever settles it could read it after all.
  row.quarantine = null;
  if (state !== "queued") row.outcome = JSON.stringify(outcome);
  if (state === "queued" || state === "failed") row.last_error = outcome.message;
  if (delay_seconds !== null) row.not_before = w.time.in(delay_seconds * 1_000);
  if (state === "canceled" && job.cancellation_request !== null)
    acknowledge(w, edit, job.cancellation_request, stoppedText(outcome, retained));
  edit.event({
    ...conclusion(state, fence.attempt, outcome.message, delay_seconds),
    payload: payloadOf(fence, settlement, delay_seconds, row.not_before),
  });
  edit.save();
  return toJob(row);
}

function stoppedText({ residual }: Outcome, retained: SchedulerRow | null): string {
  if (retained !== null) return `Job ${retained.native_id} of ${retained.provider} goes on; nothing of it was touched.`;
  if (residual.length === 0) return "Everything that the job had started is gone.";
  return `What the job had started is stopped, but ${residual.length} of its processes could not be ended.`;
}

/** The scheduler's job is left to go on: that is for a cancel which does not mean it, and decided in the commit that acknowledges the cancel. */
function retainScheduled(w: Writing, fence: Fence, row: JobRow, outcome: Outcome): SchedulerRow {
  const scheduled = schedulerRow(w, row.sequence, fence.attempt);
  if (scheduled === null) throw nothingIntended(fence);
  const request = parsedOrNull<CancellationRequest>(row.cancellation_request, fence.job_id);
  if (scheduled.submission !== "submitted" || outcome.reason !== "canceled" || request === null || request.cancel_scheduler) {
    throw conflict(`nothing asks for job ${scheduled.native_id ?? scheduled.marker} to be left to go on without its job here`, scheduled);
  }
  w.sql.run("UPDATE scheduler_jobs SET retained = 1 WHERE job = ? AND attempt = ?", row.sequence, fence.attempt);
  return scheduled;
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
