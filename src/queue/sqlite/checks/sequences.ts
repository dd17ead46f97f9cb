import type { Reading, Writing } from "../access.ts";
import { type Budget, type Numbered, type NumberedPage, walk } from "./budget.ts";
import type { Damage, Range, Steps, Tally } from "./damage.ts";

const gap = (check: string, subject: string, detail: string): Damage => ({ check, subject, detail, mend: null });

/** Rows are numbered from 1 without gaps. Their numbers are published, so they are not given anew. */
export const gaps = (check: string, subject: string, { n, low, high }: Numbered, what: string): Damage[] =>
  low !== 1 || high !== n ? [gap(check, subject, `${n} ${what} are numbered from ${low} to ${high}`)] : [];

/** The number that the next row gets follows the last row's. */
export function counter(check: string, subject: string, next: number, high: number, what: string, mend: (w: Writing) => void): Damage[] {
  return next === high + 1 ? [] : [{ check, subject, detail: `the next ${what} would be ${next}, after ${high}`, mend }];
}

/** Statement for the numbers of one owner's rows in a table: `owner` is its condition, then come the number to go on after and the limit. */
export const numbers = (table: string, number: string, owner: string): string =>
  `SELECT count(*) AS n, coalesce(min(number), 1) AS low, coalesce(max(number), 0) AS high
   FROM (SELECT ${number} AS number FROM ${table} WHERE ${owner} AND ${number} > ? ORDER BY ${number} LIMIT ?)`;

/** Pages of rows that such a statement finds. */
export function pagesOf(r: Reading, sql: string, tally: (rows: number) => void, ...owner: number[]) {
  return (after: number, limit: number): NumberedPage => {
    const page = r.sql.get<Numbered>(sql, ...owner, after, limit) ?? { n: 0, low: 1, high: 0 };
    tally(page.n);
    return { ...page, last: page.n < limit };
  };
}

interface TaskCounter {
  readonly job: number;
  readonly task: number;
  readonly subject: string;
}

/** The timelines of tasks are numbered from 1 without gaps, and each task's row knows the next number. */
export function* taskTimelines(r: Reading, budget: Budget, { from, to }: Range, tally: Tally): Steps {
  const sql = numbers("task_events", "seq", "job = ? AND task = ?");
  const tasks = r.sql.all<TaskCounter>(
    `SELECT job, sequence AS task, task_id AS subject FROM tasks WHERE job BETWEEN ? AND ?
       AND (next_seq <> 1 OR EXISTS (SELECT 1 FROM task_events AS e WHERE e.job = tasks.job AND e.task = tasks.sequence)) ORDER BY job, sequence`,
    from,
    to,
  );
  for (const { job, task, subject } of tasks) {
    const found = yield* walk(
      budget,
      pagesOf(r, sql, (rows) => tally("task_events", rows), job, task),
    );
    const next = r.sql.get<{ next_seq: number }>("SELECT next_seq FROM tasks WHERE job = ? AND sequence = ?", job, task)?.next_seq;
    if (next === undefined) continue;
    yield* gaps("task_event_sequence", subject, found, "task events");
    yield* counter("task_event_counter", subject, next, found.high, "task event", (w) => countTaskEvents(w, job, task));
  }
}

function countTaskEvents(w: Writing, job: number, task: number): void {
  w.sql.run(
    `UPDATE tasks SET next_seq = 1 + coalesce((SELECT max(seq) FROM task_events AS e WHERE e.job = tasks.job AND e.task = tasks.sequence), 0)
     WHERE job = ? AND sequence = ?`,
    job,
    task,
  );
}

/** Reports of progress and artifacts are numbered from 1 without gaps. */
export function* recordSequences(r: Reading, budget: Budget, { from, to }: Range, tally: Tally): Steps {
  for (const table of ["progress", "artifacts"] as const) {
    const sql = numbers(table, "sequence", "job = ?");
    const jobs = r.sql.all<{ sequence: number; job_id: string }>(
      `SELECT sequence, job_id FROM jobs WHERE sequence BETWEEN ? AND ? AND EXISTS (SELECT 1 FROM ${table} AS t WHERE t.job = jobs.sequence)`,
      from,
      to,
    );
    for (const { sequence, job_id } of jobs) {
      const found = yield* walk(
        budget,
        pagesOf(r, sql, (rows) => tally(table, rows), sequence),
      );
      yield* gaps(`${table}_sequence`, job_id, found, "records");
    }
  }
}
