import type { JobKind, JobState } from "../../../domain/job.ts";
import { newId } from "../../../lib/ids.ts";
import type { Writing } from "../access.ts";
import { taskStateOf } from "../job-edit.ts";
import type { Damage, JobCheck } from "./damage.ts";

interface JobTask {
  readonly job: number;
  readonly job_id: string;
  readonly kind: JobKind;
  readonly state: JobState;
  readonly task_id: string | null;
  readonly task_state: string | null;
}

/** Every job has a task, and its state follows the job's. Those that stand for a scheduler's job have a check of their own. */
export const taskStates: JobCheck = (r, { from, to }) => {
  const rows = r.sql.all<JobTask>(
    `SELECT jobs.sequence AS job, jobs.job_id, jobs.kind, jobs.state, tasks.task_id, tasks.state AS task_state
     FROM jobs LEFT JOIN tasks ON tasks.job = jobs.sequence
       AND tasks.sequence NOT IN (SELECT task FROM scheduler_jobs AS s WHERE s.job = jobs.sequence)
     WHERE jobs.sequence BETWEEN ? AND ?`,
    from,
    to,
  );
  return rows.flatMap((row): Damage[] => {
    if (row.task_id === null) {
      return [{ check: "task", subject: row.job_id, detail: "it has no task", mend: (w) => addTask(w, row) }];
    }
    const expected = taskStateOf(row.state);
    if (row.task_state === expected) return [];
    return [
      {
        check: "task_state",
        subject: row.task_id,
        detail: `it is ${row.task_state}; its job ${row.job_id} is ${row.state}`,
        mend: (w) => followJob(w, row.job),
      },
    ];
  });
};

function addTask(w: Writing, { job, kind, state }: JobTask): void {
  w.sql.run(
    "INSERT INTO tasks (job, sequence, task_id, name, state, created_at, updated_at) VALUES (?1, 1, ?2, ?3, ?4, ?5, ?5)",
    job,
    newId("task"),
    kind,
    taskStateOf(state),
    w.now,
  );
}

function followJob(w: Writing, job: number): void {
  const row = w.sql.get<{ state: JobState }>("SELECT state FROM jobs WHERE sequence = ?", job);
  if (row !== null)
    w.sql.run(
      `UPDATE tasks SET state = ?1, updated_at = ?2
       WHERE job = ?3 AND state <> ?1 AND sequence NOT IN (SELECT task FROM scheduler_jobs WHERE job = ?3)`,
      taskStateOf(row.state),
      w.now,
      job,
    );
}
