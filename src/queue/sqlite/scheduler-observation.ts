import { RelayError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import { LIMITS } from "../../domain/limits.ts";
import { hasEnded, type SchedulerJob, type SchedulerPhase, type SchedulerStatus } from "../../domain/scheduler.ts";
import type { Fence } from "../store.ts";
import type { Writing } from "./access.ts";
import { attemptRow } from "./attempt-rows.ts";
import { JobEdit } from "./job-edit.ts";
import { jobHead } from "./job-rows.ts";
import { boundedJson, parsedOrNull } from "./record-json.ts";
import { nothingIntended } from "./scheduler-jobs.ts";
import {
  conflict,
  type Over,
  phaseOf,
  type SchedulerRow,
  schedulerRow,
  schedulerTaskState,
  setTaskState,
  toSchedulerJob,
} from "./scheduler-rows.ts";

/** An observation that says nothing new is written down after this time, so that many jobs that wait do not keep the disk busy. */
const NOTHING_NEW_MS = 60_000;

/**
 * The newest observation of an attempt's job, with an event where the phase has changed and the task's state. One that is older than what is on record, or says
 * nothing new within a minute, changes nothing.
 *
 * @throws RelayError attempt_fenced where the attempt is over and its job of the scheduler has ended; state_conflict where nothing is submitted, or of another id
 */
export function observeScheduler(w: Writing, fence: Fence, status: SchedulerStatus): SchedulerJob {
  const head = jobHead(w, fence.job_id);
  const known = schedulerRow(w, head.sequence, fence.attempt);
  if (known === null) throw nothingIntended(fence);
  if (known.native_id === null) throw conflict(`nothing of attempt ${fence.attempt} of ${fence.job_id} is submitted`, known);
  if (status.scheduler !== known.provider || status.scheduler_job_id !== known.native_id) {
    throw conflict(`the status is of ${status.scheduler_job_id}, and the attempt's job is ${known.native_id}`, known);
  }
  const over = overOf(w, head.sequence, fence.attempt);
  if (over !== null && known.ended_at !== null) {
    throw new RelayError("attempt_fenced", `attempt ${fence.attempt} of ${fence.job_id} is over, and so is ${known.native_id}`, {
      ...fence,
    });
  }
  if (isOldNews(known, status)) return toSchedulerJob(known);
  const endedAt = hasEnded(status.phase) ? (known.ended_at ?? status.observed_at) : null;
  const text = boundedJson(status, LIMITS.eventRecordBytes, "the status");
  w.sql.run(
    "UPDATE scheduler_jobs SET status = ?, observed_at = ?, ended_at = ? WHERE job = ? AND attempt = ?",
    text,
    status.observed_at,
    endedAt,
    known.job,
    known.attempt,
  );
  setTaskState(w, known.job, known.task, schedulerTaskState(status.phase, known.retained === 1, over));
  const edit = new JobEdit(w, head);
  if (phaseOf(known) !== status.phase) edit.event(phaseEvent(known, status));
  edit.save();
  return toSchedulerJob({ ...known, status: text, observed_at: status.observed_at, ended_at: endedAt });
}

function overOf(w: Writing, job: number, attempt: number): Over {
  const row = attemptRow(w, job, attempt);
  if (row === null || row.state === "void") return "void";
  return row.state === "ended"
    ? (parsedOrNull<{ reason: Exclude<Over, null> }>(row.outcome, `attempt ${attempt}`)?.reason ?? "void")
    : null;
}

function isOldNews(known: SchedulerRow, status: SchedulerStatus): boolean {
  if (known.observed_at === null) return false;
  const passed = Date.parse(status.observed_at) - Date.parse(known.observed_at);
  if (passed < 0) return true;
  const before = parsedOrNull<SchedulerStatus>(known.status, `the scheduler's job of ${known.job_id}`);
  return passed < NOTHING_NEW_MS && before !== null && newsOf(before) === newsOf(status);
}

/** What the clock alone does not change. */
const newsOf = (status: SchedulerStatus): string => JSON.stringify({ ...status, observed_at: "", elapsed_seconds: null });

const EVENT_OF = {
  submitted: "scheduler.job_pending",
  pending: "scheduler.job_pending",
  allocated: "scheduler.job_allocated",
  running: "scheduler.job_running",
  completed: "scheduler.job_completed",
  failed: "scheduler.job_completed",
  canceled: "scheduler.job_completed",
  unknown: "scheduler.job_unknown",
} as const satisfies Record<SchedulerPhase, NewEvent["event_type"]>;

function phaseEvent({ attempt, task_id, provider }: SchedulerRow, status: SchedulerStatus): NewEvent {
  const { scheduler_job_id, phase, raw_state, reason, nodes, partition, exit_code, signal, queue_position, observed_at } = status;
  const why = reason === null || reason === "None" ? "" : `: ${reason}`;
  const place = phase === "pending" && queue_position !== null ? `, about number ${queue_position} in its queue` : "";
  const where = phase === "running" && nodes !== null ? ` on ${nodes}` : "";
  const word = raw_state === null ? phase : raw_state === phase ? phase : `${phase} (${raw_state})`;
  return {
    event_type: EVENT_OF[phase],
    level: phase === "failed" || phase === "unknown" ? "warning" : "info",
    message: `${provider} says of ${scheduler_job_id}: ${word}${where}${why}${place}`,
    payload: {
      attempt,
      task_id,
      scheduler: provider,
      scheduler_job_id,
      phase,
      raw_state,
      reason,
      partition,
      nodes,
      exit_code,
      signal,
      queue_position,
      observed_at,
    },
  };
}
