import { RelayError } from "../../domain/errors.ts";
import type { OutcomeReason } from "../../domain/job.ts";
import type { SchedulerJob, SchedulerName, SchedulerPhase, SchedulerStatus, SubmissionState } from "../../domain/scheduler.ts";
import type { TaskState } from "../../domain/task.ts";
import type { Reading, Writing } from "./access.ts";
import { unreadableJob } from "./job-rows.ts";
import { parsedOrNull } from "./record-json.ts";

/** A scheduler's job with the ids of what it belongs to. */
export interface SchedulerRow {
  readonly job: number;
  readonly job_id: string;
  readonly attempt: number;
  readonly task: number;
  readonly task_id: string;
  readonly provider: SchedulerName;
  readonly marker: string;
  readonly submission: SubmissionState;
  readonly native_id: string | null;
  readonly scheduler_cluster: string | null;
  readonly retained: number;
  readonly intended_at: string;
  readonly submitted_at: string | null;
  readonly observed_at: string | null;
  readonly ended_at: string | null;
  readonly status: string | null;
}

/** To be followed by conditions on `s`. */
export const SELECT_SCHEDULER = `SELECT s.job, jobs.job_id, s.attempt, s.task, tasks.task_id, s.provider, s.marker, s.submission, s.native_id,
  s.scheduler_cluster, s.retained, s.intended_at, s.submitted_at, s.observed_at, s.ended_at, s.status
  FROM scheduler_jobs AS s CROSS JOIN jobs ON jobs.sequence = s.job CROSS JOIN tasks ON tasks.job = s.job AND tasks.sequence = s.task`;

/** The scheduler's job of an attempt; null where none was intended. */
export const schedulerRow = (r: Reading, job: number, attempt: number): SchedulerRow | null =>
  r.sql.get<SchedulerRow>(`${SELECT_SCHEDULER} WHERE s.job = ? AND s.attempt = ?`, job, attempt);

export function toSchedulerJob({ job: _job, task: _task, retained, status, ...row }: SchedulerRow): SchedulerJob {
  return {
    ...row,
    retained: retained === 1,
    status: parsedOrNull<SchedulerStatus>(status, `the scheduler's job of attempt ${row.attempt} of ${row.job_id}`),
  };
}

/** What a phase says of the task; null where it says nothing. */
const OF_PHASE: Readonly<Record<SchedulerPhase, TaskState | null>> = {
  submitted: "queued",
  pending: "queued",
  allocated: "running",
  running: "running",
  completed: "succeeded",
  failed: "failed",
  canceled: "canceled",
  unknown: null,
};

/** Of the task that stands for a scheduler's job. */
export const schedulerTaskName = (provider: string, attempt: number): string => `${provider}, attempt ${attempt}`;

/** How an attempt is over; null while it is open. */
export type Over = OutcomeReason | "void" | null;

/**
 * The state of the task that stands for a scheduler's job: what the scheduler says; where it has not said how it ended, what became of the attempt, unless the
 * job was left to go on. Null where nobody has said anything, so that it stays as it is.
 */
export function schedulerTaskState(phase: SchedulerPhase | null, retained: boolean, over: Over): TaskState | null {
  const said = phase === null ? "queued" : OF_PHASE[phase];
  if (over === null || retained || said === "succeeded" || said === "failed" || said === "canceled") return said;
  if (over === "completed") return "succeeded";
  return over === "canceled" ? "canceled" : "failed";
}

export const phaseOf = (row: Pick<SchedulerRow, "status" | "job_id" | "attempt">): SchedulerPhase | null =>
  parsedOrNull<SchedulerStatus>(row.status, `the scheduler's job of attempt ${row.attempt} of ${row.job_id}`)?.phase ?? null;

export function setTaskState(w: Writing, job: number, task: number, state: TaskState | null): void {
  if (state === null) return;
  w.sql.run("UPDATE tasks SET state = ?1, updated_at = ?2 WHERE job = ?3 AND sequence = ?4 AND state <> ?1", state, w.now, job, task);
}

/** The attempt is over: the task that stands for its job at the scheduler has the end that can be told. */
export function closeSchedulerTask(w: Writing, job: number, attempt: number, over: Exclude<Over, null>): void {
  const row = w.sql.get<{ task: number; retained: number; phase: SchedulerPhase | null }>(
    `SELECT task, retained, CASE WHEN json_valid(status) THEN status ->> 'phase' END AS phase FROM scheduler_jobs WHERE job = ? AND attempt = ?`,
    job,
    attempt,
  );
  if (row !== null) setTaskState(w, job, row.task, schedulerTaskState(row.phase, row.retained === 1, over));
}

/** @throws RelayError queue_corrupt: the row that was just written is not there */
export function writtenRow(r: Reading, job: number, jobId: string, attempt: number): SchedulerRow {
  const row = schedulerRow(r, job, attempt);
  if (row === null) throw unreadableJob(jobId, `the scheduler's job of its attempt ${attempt} is missing`);
  return row;
}

export const conflict = (message: string, row: SchedulerRow): RelayError =>
  new RelayError("state_conflict", message, {
    job_id: row.job_id,
    attempt: row.attempt,
    submission: row.submission,
    scheduler_job_id: row.native_id,
  });
