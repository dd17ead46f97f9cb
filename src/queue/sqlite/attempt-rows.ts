import * as v from "valibot";
import { Attempt, type AttemptState, type ProcessIdentity } from "../../domain/attempt.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Outcome } from "../../domain/job.ts";
import type { Page } from "../../domain/page.ts";
import type { Fence, PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { type JobHead, type JobRow, jobHead, jobRow, unreadableJob } from "./job-rows.ts";
import { pageOf, rowsOfPage } from "./pages.ts";
import { parsedOrNull } from "./record-json.ts";

export interface AttemptRow {
  readonly attempt: number;
  readonly state: AttemptState;
  readonly shim: string | null;
  readonly process: string | null;
  readonly claimed_at: string;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly outcome: string | null;
}

/** Column list for statements on `attempts`. */
export const ATTEMPT_COLUMNS = "attempt, state, shim, process, claimed_at, started_at, ended_at, outcome";

/** Null when there is none. */
export const attemptRow = (r: Reading, job: number, attempt: number): AttemptRow | null =>
  r.sql.get<AttemptRow>(`SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE job = ? AND attempt = ?`, job, attempt);

/** All attempts of a job in order. */
export const attemptRows = (r: Reading, job: number): AttemptRow[] =>
  r.sql.all<AttemptRow>(`SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE job = ? ORDER BY attempt`, job);

export function toAttempt(row: AttemptRow, jobId: string): Attempt {
  const subject = `attempt ${row.attempt} of ${jobId}`;
  return {
    job_id: jobId,
    attempt: row.attempt,
    state: row.state,
    shim: parsedOrNull<ProcessIdentity>(row.shim, subject),
    process: parsedOrNull<ProcessIdentity>(row.process, subject),
    claimed_at: row.claimed_at,
    started_at: row.started_at,
    ended_at: row.ended_at,
    outcome: parsedOrNull<Outcome>(row.outcome, subject),
  };
}

/** The record of an attempt, checked against its schema; or why it cannot be read. */
export function checkAttempt(row: AttemptRow, jobId: string): { readonly attempt: Attempt } | { readonly unreadable: string } {
  try {
    const parsed = v.safeParse(Attempt, toAttempt(row, jobId));
    if (parsed.success) return { attempt: parsed.output };
    const [issue] = parsed.issues;
    return { unreadable: `the record of attempt ${row.attempt} cannot be read: ${v.getDotPath(issue) ?? "record"}: ${issue.message}` };
  } catch (error) {
    return { unreadable: error instanceof Error ? error.message : String(error) };
  }
}

/** The attempt of that number, or the current one; null when there is none. */
export function attempt(r: Reading, jobId: string, number?: number): Attempt | null {
  const job = jobHead(r, jobId);
  const row = attemptRow(r, job.sequence, number ?? job.attempts);
  return row === null ? null : toAttempt(row, jobId);
}

export function attempts(r: Reading, jobId: string, page: PageRequest): Page<Attempt> {
  const job = jobHead(r, jobId);
  const within = [job.sequence, page.cursor] as const;
  const sizes = r.sql.all<{ bytes: number }>(
    `SELECT coalesce(octet_length(shim), 0) + coalesce(octet_length(process), 0) + coalesce(octet_length(outcome), 0) AS bytes
     FROM attempts WHERE job = ? AND attempt >= ? ORDER BY attempt LIMIT ?`,
    ...within,
    page.limit,
  );
  const rows = r.sql.all<AttemptRow>(
    `SELECT ${ATTEMPT_COLUMNS} FROM attempts WHERE job = ? AND attempt >= ? ORDER BY attempt LIMIT ?`,
    ...within,
    rowsOfPage(sizes),
  );
  return pageOf(
    rows,
    (row) => row.attempt,
    (row) => toAttempt(row, jobId),
    page,
    job.attempts,
  );
}

/** An open attempt and its job, as a fenced write meets them. */
export interface Open<Row extends JobHead> {
  readonly row: Row;
  readonly attempt: AttemptRow;
}

/** The fence's job with its short columns; attempt_fenced unless the attempt is the current one and open. */
export const openHead = (w: Writing, fence: Fence): Open<JobHead> => checkFence(w, fence, jobHead(w, fence.job_id));

/** The same with the whole job. */
export const openRow = (w: Writing, fence: Fence): Open<JobRow> => checkFence(w, fence, jobRow(w, fence.job_id));

function checkFence<Row extends JobHead>(w: Writing, fence: Fence, row: Row): Open<Row> {
  const data = { job_id: fence.job_id, attempt: fence.attempt, current_attempt: row.attempts, state: row.state };
  if (fence.attempt !== row.attempts || fence.attempt < 1) {
    throw new RelayError("attempt_fenced", `attempt ${fence.attempt} of ${fence.job_id} is not its current one, ${row.attempts}`, data);
  }
  const attempt = attemptRow(w, row.sequence, fence.attempt);
  if (attempt === null) throw unreadableJob(fence.job_id, `its attempt ${fence.attempt} is missing`);
  if ((attempt.state !== "claimed" && attempt.state !== "running") || (row.state !== "leased" && row.state !== "running")) {
    throw new RelayError("attempt_fenced", `attempt ${fence.attempt} of ${fence.job_id} has ended`, data);
  }
  return { row, attempt };
}
