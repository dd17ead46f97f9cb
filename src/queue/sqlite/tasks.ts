import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { Page } from "../../domain/page.ts";
import type { Metadata } from "../../domain/primitives.ts";
import type { NewTaskEvent, Task, TaskEvent, TaskEventStatus, TaskState } from "../../domain/task.ts";
import { newId } from "../../lib/ids.ts";
import type { PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { JobEdit, taskStateOf } from "./job-edit.ts";
import { COLUMNS, type JobHead, jobSequence, unreadableJob } from "./job-rows.ts";
import { pageOf, rowsWithin, textBytes } from "./pages.ts";
import { boundedJson, parsed, storable } from "./record-json.ts";

interface TaskRow {
  readonly job: number;
  readonly job_id: string;
  readonly sequence: number;
  readonly task_id: string;
  readonly name: string;
  readonly state: TaskState;
  readonly created_at: string;
  readonly updated_at: string;
  readonly next_seq: number;
}

const SELECT_TASK = `SELECT tasks.job, jobs.job_id, tasks.sequence, tasks.task_id, tasks.name, tasks.state, tasks.created_at, tasks.updated_at,
  tasks.next_seq FROM tasks CROSS JOIN jobs ON jobs.sequence = tasks.job`;

const toTask = ({ task_id, job_id, sequence, name, state, created_at, updated_at }: TaskRow): Task => ({
  task_id,
  job_id,
  sequence,
  name,
  state,
  created_at,
  updated_at,
});

const taskRow = (r: Reading, taskId: string): TaskRow => {
  const row = r.sql.get<TaskRow>(`${SELECT_TASK} WHERE tasks.task_id = ?`, taskId);
  if (row === null) throw new RelayError("task_not_found", `there is no task ${taskId}`, { task_id: taskId });
  return row;
};

/** The task that every job has from its submission on; events that a job reports belong to it. */
export function firstTask(r: Reading, job: JobHead): TaskRow {
  const row = r.sql.get<TaskRow>(`${SELECT_TASK} WHERE tasks.job = ? AND tasks.sequence = 1`, job.sequence);
  if (row === null) throw unreadableJob(job.job_id, "its task is missing");
  return row;
}

/** A part of a job, by its name; it is made where there is none, and its state follows the job's. */
export function namedTask(w: Writing, job: JobHead, name: string): TaskRow {
  const find = () =>
    w.sql.get<TaskRow>(
      `${SELECT_TASK} WHERE tasks.job = ?1 AND tasks.name = ?2 AND tasks.sequence > 1
         AND tasks.sequence NOT IN (SELECT task FROM scheduler_jobs WHERE job = ?1) LIMIT 1`,
      job.sequence,
      name,
    );
  const known = find();
  if (known !== null) return known;
  w.sql.run(
    `INSERT INTO tasks (job, sequence, task_id, name, state, created_at, updated_at)
     SELECT ?1, max(sequence) + 1, ?2, ?3, ?4, ?5, ?5 FROM tasks WHERE job = ?1`,
    job.sequence,
    newId("task"),
    name,
    taskStateOf(job.state),
    w.now,
  );
  return find()!;
}

export const task = (r: Reading, taskId: string): Task => toTask(taskRow(r, taskId));

export function tasks(r: Reading, jobId: string, page: PageRequest): Page<Task> {
  const job = jobSequence(r, jobId);
  const rows = r.sql.all<TaskRow>(
    `${SELECT_TASK} WHERE tasks.job = ? AND tasks.sequence >= ? ORDER BY tasks.sequence LIMIT ?`,
    job,
    page.cursor,
    page.limit,
  );
  const total = r.sql.get<{ n: number }>("SELECT count(*) AS n FROM tasks WHERE job = ?", job)?.n ?? 0;
  return pageOf(rows, (row) => row.sequence, toTask, page, total);
}

export function recordTaskEvent(w: Writing, taskId: string, event: NewTaskEvent): TaskEvent {
  const row = taskRow(w, taskId);
  const job = w.sql.get<JobHead>(`SELECT ${COLUMNS.head} FROM jobs WHERE sequence = ?`, row.job);
  if (job === null) throw unreadableJob(row.job_id, "it is missing");
  const edit = new JobEdit(w, job);
  const recorded = appendTaskEvent(w, edit, row, event);
  edit.save();
  return recorded;
}

/** Add to a task's timeline, with an event that tells the job's followers. Callers save the edit. */
export function appendTaskEvent(w: Writing, edit: JobEdit, task: TaskRow, event: NewTaskEvent): TaskEvent {
  const next = w.sql.get<{ seq: number }>(
    "UPDATE tasks SET next_seq = next_seq + 1 WHERE job = ? AND sequence = ? RETURNING next_seq - 1 AS seq",
    task.job,
    task.sequence,
  );
  if (next === null) throw unreadableJob(task.job_id, "its task is missing");
  const recorded: TaskEvent = {
    task_id: task.task_id,
    job_id: task.job_id,
    seq: next.seq,
    event_type: event.event_type,
    label: storable(event.label),
    status: event.status,
    summary: storable(event.summary),
    detail: event.detail === null ? null : storable(event.detail),
    path_refs: event.path_refs,
    artifact_refs: event.artifact_refs,
    metadata: event.metadata,
    created_at: w.now,
  };
  boundedJson(recorded, LIMITS.eventRecordBytes, "the task event");
  w.sql.run(
    `INSERT INTO task_events (job, task, seq, event_type, label, status, summary, detail, path_refs, artifact_refs, metadata, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    task.job,
    task.sequence,
    recorded.seq,
    recorded.event_type,
    recorded.label,
    recorded.status,
    recorded.summary,
    recorded.detail,
    JSON.stringify(recorded.path_refs),
    JSON.stringify(recorded.artifact_refs),
    JSON.stringify(recorded.metadata),
    recorded.created_at,
  );
  edit.event({
    event_type: "task.event",
    level: event.status === "error" ? "error" : event.status === "warning" ? "warning" : "info",
    message: `${recorded.label}: ${recorded.summary}`,
    payload: {
      task_id: task.task_id,
      seq: recorded.seq,
      event_type: recorded.event_type,
      label: recorded.label,
      status: recorded.status,
      summary: recorded.summary,
    },
  });
  return recorded;
}

interface TaskEventRow {
  readonly seq: number;
  readonly event_type: string;
  readonly label: string;
  readonly status: TaskEventStatus;
  readonly summary: string;
  readonly detail: string | null;
  readonly path_refs: string;
  readonly artifact_refs: string;
  readonly metadata: string;
  readonly created_at: string;
}

export function taskEvents(r: Reading, taskId: string, page: PageRequest): Page<TaskEvent> {
  const row = taskRow(r, taskId);
  const rows = rowsWithin(
    page,
    (from, limit) =>
      r.sql.all<TaskEventRow>(
        `SELECT seq, event_type, label, status, summary, detail, path_refs, artifact_refs, metadata, created_at FROM task_events
         WHERE job = ? AND task = ? AND seq >= ? ORDER BY seq LIMIT ?`,
        row.job,
        row.sequence,
        from,
        limit,
      ),
    ({ seq }) => seq,
    ({ summary, detail, path_refs, artifact_refs, metadata }) => textBytes(summary, detail, path_refs, artifact_refs, metadata),
  );
  const subject = `a task event of ${taskId}`;
  const toRecord = (event: TaskEventRow): TaskEvent => ({
    ...event,
    task_id: taskId,
    job_id: row.job_id,
    path_refs: parsed<string[]>(event.path_refs, subject),
    artifact_refs: parsed<string[]>(event.artifact_refs, subject),
    metadata: parsed<Metadata>(event.metadata, subject),
  });
  return pageOf(rows, (event) => event.seq, toRecord, page, row.next_seq - 1);
}
