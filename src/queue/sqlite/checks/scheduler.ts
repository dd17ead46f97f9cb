import * as v from "valibot";
import { hasEnded, SchedulerJob, type SchedulerPhase } from "../../../domain/scheduler.ts";
import type { TaskState } from "../../../domain/task.ts";
import { newId } from "../../../lib/ids.ts";
import type { Writing } from "../access.ts";
import { type Over, type SchedulerRow, schedulerTaskName, schedulerTaskState, setTaskState } from "../scheduler-rows.ts";
import type { Damage, JobCheck } from "./damage.ts";

/** As it lies there: nothing of it is known to be what it should be. */
interface Row extends Omit<SchedulerRow, "task_id"> {
  readonly task_id: string | null;
  readonly task_state: TaskState | null;
  /** Of the attempt: null while it is open. */
  readonly over: Over;
}

const SELECT = `SELECT s.*, jobs.job_id, tasks.task_id, tasks.state AS task_state,
    CASE a.state WHEN 'ended' THEN coalesce(CASE WHEN json_valid(a.outcome) THEN a.outcome ->> 'reason' END, 'void')
      WHEN 'void' THEN 'void' END AS over
  FROM scheduler_jobs AS s CROSS JOIN jobs ON jobs.sequence = s.job LEFT JOIN tasks ON tasks.job = s.job AND tasks.sequence = s.task
  LEFT JOIN attempts AS a ON a.job = s.job AND a.attempt = s.attempt`;

/** Every job of a scheduler can be read, its status is its own, and the task that stands for it says the same. */
export const schedulerRecords: JobCheck = (r, { from, to }) =>
  r.sql.all<Row>(`${SELECT} WHERE s.job BETWEEN ? AND ? ORDER BY s.job, s.attempt`, from, to).flatMap(ofRow);

function ofRow(row: Row): Damage[] {
  const { job, job_id, attempt, task, provider } = row;
  const find = (check: string, detail: string, mend: Damage["mend"]): Damage[] => [{ check, subject: job_id, detail, mend }];
  const named = `the job of ${provider} of attempt ${attempt}`;
  if (row.task_id === null) return find("task", `${named} has no task`, (w) => addTask(w, row));
  const status = statusOf(row);
  if (status === "wrong")
    return find("scheduler_job", `the status of ${named} cannot be read, or is another's`, (w) => forgetStatus(w, row));
  if (!v.is(SchedulerJob, recordOf(row, status))) return find("scheduler_job", `the record of ${named} cannot be read`, null);
  const end = ofEnd(row, endOf(row, status), named, find);
  const state = schedulerTaskState(phaseIn(status), row.retained === 1, row.over);
  if (state === null || state === row.task_state) return end;
  const detail = `the task of ${named} is ${row.task_state}, and should be ${state}`;
  return [...end, ...find("task_state", detail, (w) => setTaskState(w, job, task, state))];
}

function ofEnd(
  row: Row,
  endedAt: string | null,
  named: string,
  find: (check: string, detail: string, mend: Damage["mend"]) => Damage[],
): Damage[] {
  if (endedAt === row.ended_at) return [];
  const detail = `${named} ${endedAt === null ? "has an end, and its status is none" : "has no end, and its status is one"}`;
  return find("scheduler_job", detail, (w) => setEnd(w, row, endedAt));
}

/** When its end was observed, as its status has it: whoever has none is followed, and of one that has one and whose attempt is over nothing more is taken in. */
function endOf({ ended_at, observed_at }: Row, status: unknown): string | null {
  const phase = phaseIn(status);
  return phase !== null && hasEnded(phase) ? (ended_at ?? observed_at) : null;
}

const phaseIn = (status: unknown): SchedulerPhase | null => (status as SchedulerJob["status"])?.phase ?? null;

/** Null where there is none. */
function statusOf(row: Row): unknown {
  if (row.status === null) return null;
  try {
    const status: unknown = JSON.parse(row.status);
    const parsed = v.safeParse(SchedulerJob.entries.status, status);
    const own = parsed.success && parsed.output?.scheduler_job_id === row.native_id && parsed.output?.scheduler === row.provider;
    return own ? status : "wrong";
  } catch {
    return "wrong";
  }
}

const recordOf = (
  { job: _job, task: _task, task_state: _state, over: _over, retained, ...record }: Row,
  status: unknown,
): Record<keyof SchedulerJob, unknown> => ({ ...record, status, retained: retained === 1 });

/** The next observation brings another. */
function forgetStatus(w: Writing, { job, attempt }: Row): void {
  w.sql.run("UPDATE scheduler_jobs SET status = NULL, observed_at = NULL, ended_at = NULL WHERE job = ? AND attempt = ?", job, attempt);
}

function setEnd(w: Writing, { job, attempt }: Row, endedAt: string | null): void {
  w.sql.run("UPDATE scheduler_jobs SET ended_at = ? WHERE job = ? AND attempt = ?", endedAt, job, attempt);
}

function addTask(w: Writing, { job, task, provider, attempt }: Row): void {
  w.sql.run(
    "INSERT INTO tasks (job, sequence, task_id, name, state, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?5)",
    job,
    task,
    newId("task"),
    schedulerTaskName(provider, attempt),
    w.now,
  );
}
