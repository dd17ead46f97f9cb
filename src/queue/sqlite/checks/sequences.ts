import type { Damage, JobCheck } from "./damage.ts";

interface Counted {
  readonly job: number;
  readonly subject: string;
  readonly next_seq: number;
  readonly n: number;
  readonly low: number;
  readonly high: number;
}

/** Events are numbered from 1 without gaps, and the job's row knows the next number. */
export const eventSequences: JobCheck = (r, { from, to }) => {
  const rows = r.sql.all<Counted>(
    `SELECT jobs.sequence AS job, jobs.job_id AS subject, jobs.next_seq, coalesce(e.n, 0) AS n, coalesce(e.low, 1) AS low, coalesce(e.high, 0) AS high
     FROM jobs LEFT JOIN (SELECT job, count(*) AS n, min(seq) AS low, max(seq) AS high FROM events WHERE job BETWEEN ?1 AND ?2 GROUP BY job) AS e
       ON e.job = jobs.sequence
     WHERE jobs.sequence BETWEEN ?1 AND ?2 AND (coalesce(e.n, 0) = 0 OR e.low <> 1 OR e.high <> e.n OR jobs.next_seq <> e.high + 1)`,
    from,
    to,
  );
  return rows.flatMap((row): Damage[] => [
    ...(row.n === 0 ? [gap("event_sequence", row, "it has no events")] : []),
    ...(row.low !== 1 || row.high !== row.n
      ? [gap("event_sequence", row, `${row.n} events are numbered from ${row.low} to ${row.high}`)]
      : []),
    ...(row.next_seq === row.high + 1
      ? []
      : [
          {
            check: "event_counter",
            subject: row.subject,
            detail: `the next event would be ${row.next_seq}, after ${row.high}`,
            mend: (w) =>
              void w.sql.run(
                "UPDATE jobs SET next_seq = 1 + coalesce((SELECT max(seq) FROM events WHERE job = jobs.sequence), 0) WHERE sequence = ?",
                row.job,
              ),
          } satisfies Damage,
        ]),
  ]);
};

const gap = (check: string, row: Counted, detail: string): Damage => ({ check, subject: row.subject, detail, mend: null });

/** The same for the timelines of tasks. */
export const taskEventSequences: JobCheck = (r, { from, to }) => {
  const rows = r.sql.all<Counted & { readonly task: number }>(
    `SELECT tasks.job, tasks.sequence AS task, tasks.task_id AS subject, tasks.next_seq, coalesce(e.n, 0) AS n, coalesce(e.low, 1) AS low,
       coalesce(e.high, 0) AS high
     FROM tasks LEFT JOIN (
       SELECT job, task, count(*) AS n, min(seq) AS low, max(seq) AS high FROM task_events WHERE job BETWEEN ?1 AND ?2 GROUP BY job, task) AS e
       ON e.job = tasks.job AND e.task = tasks.sequence
     WHERE tasks.job BETWEEN ?1 AND ?2 AND (coalesce(e.low, 1) <> 1 OR coalesce(e.high, 0) <> coalesce(e.n, 0) OR tasks.next_seq <> coalesce(e.high, 0) + 1)`,
    from,
    to,
  );
  return rows.flatMap((row): Damage[] => [
    ...(row.low !== 1 || row.high !== row.n
      ? [gap("task_event_sequence", row, `${row.n} task events are numbered from ${row.low} to ${row.high}`)]
      : []),
    ...(row.next_seq === row.high + 1
      ? []
      : [
          {
            check: "task_event_counter",
            subject: row.subject,
            detail: `the next task event would be ${row.next_seq}, after ${row.high}`,
            mend: (w) =>
              void w.sql.run(
                `UPDATE tasks SET next_seq = 1 + coalesce((SELECT max(seq) FROM task_events AS e WHERE e.job = tasks.job AND e.task = tasks.sequence), 0)
                 WHERE job = ? AND sequence = ?`,
                row.job,
                row.task,
              ),
          } satisfies Damage,
        ]),
  ]);
};

/** Event payloads are read by every follower. */
export const eventPayloads: JobCheck = (r, { from, to }) =>
  r.sql
    .all<{ job_id: string; seq: number }>(
      `SELECT jobs.job_id, events.seq FROM events CROSS JOIN jobs ON jobs.sequence = events.job
       WHERE events.job BETWEEN ? AND ? AND NOT json_valid(events.payload)`,
      from,
      to,
    )
    .map(({ job_id, seq }) => ({ check: "event_payload", subject: job_id, detail: `the payload of event ${seq} is not JSON`, mend: null }));

/** Reports of progress and artifacts are numbered from 1 without gaps. Their numbers are published, so they are not given anew. */
export const recordSequences: JobCheck = (r, { from, to }) =>
  (["progress", "artifacts"] as const).flatMap((table) =>
    r.sql
      .all<{ job_id: string; n: number; low: number; high: number }>(
        `SELECT jobs.job_id, count(*) AS n, min(t.sequence) AS low, max(t.sequence) AS high FROM ${table} AS t CROSS JOIN jobs ON jobs.sequence = t.job
         WHERE t.job BETWEEN ? AND ? GROUP BY t.job HAVING low <> 1 OR high <> n`,
        from,
        to,
      )
      .map(({ job_id, n, low, high }) => ({
        check: `${table}_sequence`,
        subject: job_id,
        detail: `${n} records are numbered from ${low} to ${high}`,
        mend: null,
      })),
  );
