import type { ProcessIdentity } from "../../domain/attempt.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Outcome } from "../../domain/job.ts";
import { isTerminal } from "../../domain/transitions.ts";
import type { UnreadableJob } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { ATTEMPT_COLUMNS, type AttemptRow, checkAttempt } from "./attempt-rows.ts";
import { JobEdit } from "./job-edit.ts";
import { checkJob, type JobHead, jobHead, jobRow } from "./job-rows.ts";
import { dropLease } from "./leases.ts";
import { parsedOrNull } from "./record-json.ts";
import { closeSchedulerTask, schedulerRow, toSchedulerJob } from "./scheduler-rows.ts";

const MESSAGE_MAX = 2_000;

/** What is out of a job whose record, or whose attempt's, cannot be read; null where both can, or the job has ended. */
export function unreadable(r: Reading, jobId: string): UnreadableJob | null {
  const row = jobRow(r, jobId);
  if (isTerminal(row.state)) return null;
  const open = r.sql.get<AttemptRow>(
    `SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE job = ? AND attempt = ? AND state IN ('claimed', 'running')`,
    row.sequence,
    row.attempts,
  );
  const attempt = open === null ? null : checkAttempt(open, jobId);
  if (!("unreadable" in checkJob(row)) && (attempt === null || !("unreadable" in attempt))) return null;
  const scheduled = open === null ? null : schedulerRow(r, row.sequence, open.attempt);
  return {
    attempt: open?.attempt ?? null,
    shim: identityOf(open?.shim),
    process: identityOf(open?.process),
    // Its status is the scheduler's to tell, and may be what cannot be read.
    scheduler_job: scheduled === null ? null : toSchedulerJob({ ...scheduled, status: null }),
  };
}

/** As far as it can be read. */
function identityOf(text: string | null | undefined): ProcessIdentity | null {
  try {
    return parsedOrNull<ProcessIdentity>(text ?? null, "an identity");
  } catch {
    return null;
  }
}

/** @throws RelayError state_conflict where the record can be read, or the job has ended */
export function endUnreadable(w: Writing, jobId: string, as: "failed" | "canceled", message: string): void {
  if (unreadable(w, jobId) === null) {
    throw new RelayError("state_conflict", `the record of ${jobId} can be read, or the job has ended`, { job_id: jobId });
  }
  endRow(w, jobHead(w, jobId), as, message);
}

/** End a job, and what is out of it, by its short columns alone. */
export function endRow(w: Writing, row: JobHead, as: "failed" | "canceled", message: string): void {
  const reason = as === "failed" ? "engine_failed" : "canceled";
  const outcome: Outcome = { reason, exit_code: null, signal: null, message: message.slice(0, MESSAGE_MAX), residual: [] };
  const text = JSON.stringify(outcome);
  w.sql.run(
    "UPDATE attempts SET state = 'ended', ended_at = ?, outcome = ? WHERE job = ? AND state IN ('claimed', 'running')",
    w.now,
    text,
    row.sequence,
  );
  dropLease(w, row.sequence);
  closeSchedulerTask(w, row.sequence, row.attempts, reason);
  const edit = new JobEdit(w, row);
  edit.move(as);
  row.outcome = text;
  if (as === "failed") row.last_error = outcome.message;
  edit.event(
    as === "failed"
      ? {
          event_type: "job.failed",
          level: "error",
          message: `The job failed: ${message}`,
          payload: { reason, repaired: true },
        }
      : { event_type: "job.canceled", message: `The job was canceled: ${message}` },
  );
  edit.save();
  w.touch("queue");
}
