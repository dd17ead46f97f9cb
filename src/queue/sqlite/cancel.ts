import type { CancellationRequest, Job } from "../../domain/job.ts";
import { isTerminal } from "../../domain/transitions.ts";
import type { Fence } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { canceledOutcome } from "./canceled-outcome.ts";
import { JobEdit } from "./job-edit.ts";
import { type JobHead, jobRow, toJob } from "./job-rows.ts";
import { parsedOrNull } from "./record-json.ts";

/**
 * Queued: canceled at once. Leased or running: the request is put on record for the worker. Ended: nothing changes. Asking again changes
 * nothing either, unless the scheduler's job is now to be canceled too.
 */
export function requestCancel(w: Writing, jobId: string, options: { readonly cancel_scheduler: boolean }): Job {
  const row = jobRow(w, jobId);
  const earlier = parsedOrNull<CancellationRequest>(row.cancellation_request, jobId);
  if (isTerminal(row.state) || (earlier !== null && (earlier.cancel_scheduler || !options.cancel_scheduler))) return toJob(row);
  const edit = new JobEdit(w, row);
  const request: CancellationRequest = {
    requested_at: earlier?.requested_at ?? w.now,
    previous_state: earlier?.previous_state ?? row.state,
    cancel_scheduler: options.cancel_scheduler,
    acknowledged_at: null,
  };
  row.cancellation_request = JSON.stringify(request);
  row.updated_at = w.now;
  edit.event({
    event_type: "job.cancel_requested",
    message: "Cancellation was requested.",
    payload: { previous_state: row.state, cancel_scheduler: options.cancel_scheduler },
  });
  if (row.state === "queued") {
    edit.move("canceled");
    row.outcome = JSON.stringify(canceledOutcome("canceled while it waited in the queue"));
    acknowledge(w, edit, request, "Nothing of the job was running.");
    edit.event({ event_type: "job.canceled", message: "The job was canceled while it waited in the queue." });
  }
  edit.save();
  w.touch("queue");
  return toJob(row);
}

/** Put on record that everything the job had started is gone. Callers save the edit. */
export function acknowledge(w: Writing, edit: JobEdit<JobHead>, request: CancellationRequest, message: string): void {
  edit.row.cancellation_request = JSON.stringify({ ...request, acknowledged_at: w.now });
  edit.event({ event_type: "job.cancel_acknowledged", message, payload: { requested_at: request.requested_at } });
}

/** Open attempts whose job is to be canceled. Looked up from the leases, of which there are few. */
export const cancelRequests = (r: Reading): Fence[] =>
  r.sql.all<{ job_id: string; attempt: number }>(
    `SELECT jobs.job_id, jobs.attempts AS attempt FROM leases CROSS JOIN jobs ON jobs.sequence = leases.job
     WHERE jobs.cancellation_request IS NOT NULL ORDER BY jobs.sequence`,
  );
