import type { ProcessIdentity } from "../../domain/attempt.ts";
import { RelayError } from "../../domain/errors.ts";
import type { CancellationRequest, Job } from "../../domain/job.ts";
import type { Fence, Started } from "../store.ts";
import type { Writing } from "./access.ts";
import { type AttemptRow, openRow } from "./attempt-rows.ts";
import { acknowledge } from "./cancel.ts";
import { canceledOutcome } from "./canceled-outcome.ts";
import { JobEdit } from "./job-edit.ts";
import { toJob } from "./job-rows.ts";
import { dropLease } from "./leases.ts";
import { parsedOrNull, storable } from "./record-json.ts";
import { closeSchedulerTask, conflict, schedulerRow } from "./scheduler-rows.ts";

/** claimed -> running, and the job with it. Repeating it with the same processes changes nothing; with others it is a state_conflict. */
export function startAttempt(w: Writing, fence: Fence, started: Started): Job {
  const { row, attempt } = openRow(w, fence);
  if (attempt.state === "running") {
    if (sameProcesses(attempt, started, fence.job_id)) return toJob(row);
    throw new RelayError("state_conflict", `attempt ${fence.attempt} of ${fence.job_id} is running already, as another process`, {
      ...fence,
    });
  }
  w.sql.run(
    "UPDATE attempts SET state = 'running', shim = ?, process = ?, started_at = ? WHERE job = ? AND attempt = ?",
    JSON.stringify(started.shim),
    JSON.stringify(started.process),
    started.started_at,
    row.sequence,
    fence.attempt,
  );
  const edit = new JobEdit(w, row);
  edit.event({
    event_type: "execution.started",
    message: `The job's first process is ${started.process.pid} on ${started.process.hostname}.`,
    payload: { attempt: fence.attempt, pid: started.process.pid, shim_pid: started.shim.pid, hostname: started.process.hostname },
  });
  edit.move("running");
  edit.event({ event_type: "job.running", message: `Attempt ${fence.attempt} is running.`, payload: { attempt: fence.attempt } });
  edit.save();
  return toJob(row);
}

function sameProcesses(attempt: AttemptRow, started: Started, jobId: string): boolean {
  const same = (text: string | null, identity: ProcessIdentity): boolean => {
    const known = parsedOrNull<ProcessIdentity>(text, `attempt ${attempt.attempt} of ${jobId}`);
    return known !== null && known.pid === identity.pid && known.start_time === identity.start_time && known.boot_id === identity.boot_id;
  };
  return same(attempt.shim, started.shim) && same(attempt.process, started.process);
}

/** claimed -> void, unless its job was meant for a scheduler and not refused there. The job is queued again at its old place, or canceled where that was asked for. */
export function voidAttempt(w: Writing, fence: Fence, reason: string): Job {
  const { row, attempt } = openRow(w, fence);
  if (attempt.state !== "claimed") {
    throw new RelayError("state_conflict", `attempt ${fence.attempt} of ${fence.job_id} has started and cannot be void`, { ...fence });
  }
  const scheduled = schedulerRow(w, row.sequence, fence.attempt);
  if (scheduled !== null && scheduled.submission !== "refused") {
    throw conflict(`attempt ${fence.attempt} of ${fence.job_id} may be at ${scheduled.provider} and cannot be void`, scheduled);
  }
  w.sql.run("UPDATE attempts SET state = 'void', ended_at = ? WHERE job = ? AND attempt = ?", w.now, row.sequence, fence.attempt);
  dropLease(w, row.sequence);
  closeSchedulerTask(w, row.sequence, fence.attempt, "void");
  const edit = new JobEdit(w, row);
  row.voided_attempts += 1;
  const request = parsedOrNull<CancellationRequest>(row.cancellation_request, fence.job_id);
  if (request === null) {
    edit.move("queued");
    edit.event({
      event_type: "job.requeued",
      level: "warning",
      message: `Attempt ${fence.attempt} never started (${reason}); the job waits in the queue again.`,
      payload: { attempt: fence.attempt, reason: storable(reason, 2_000), void: true },
    });
  } else {
    edit.move("canceled");
    row.outcome = JSON.stringify(canceledOutcome("canceled before it started"));
    acknowledge(w, edit, request, `Nothing of attempt ${fence.attempt} had started.`);
    edit.event({ event_type: "job.canceled", message: "The job was canceled before it started.", payload: { attempt: fence.attempt } });
  }
  edit.save();
  return toJob(row);
}
