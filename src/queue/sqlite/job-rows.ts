import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Job, type JobKind, type JobState, type Lane } from "../../domain/job.ts";
import type { JobSummary } from "../../domain/views.ts";
import type { Reading } from "./access.ts";

/** The short columns of a job: all that most changes need. */
export interface JobHead {
  readonly sequence: number;
  readonly job_id: string;
  readonly cluster: string;
  readonly kind: JobKind;
  readonly lane: Lane;
  readonly title: string;
  readonly created_at: string;
  state: JobState;
  attempts: number;
  voided_attempts: number;
  next_seq: number;
  updated_at: string;
  leased_by: string | null;
  not_before: string | null;
  quarantine: string | null;
  last_error: string | null;
  outcome: string | null;
  cancellation_request: string | null;
}

/** All columns of a job. JSON columns are text. */
export interface JobRow extends JobHead {
  readonly idempotency_key: string;
  readonly owner_session_id: string | null;
  readonly owner_session_generation_id: string | null;
  readonly submission_digest: string;
  readonly used_artifact_refs: string;
  readonly metadata: string;
  readonly spec: string;
  readonly trace: string | null;
}

const SUMMARY_COLUMNS = "sequence, job_id, cluster, kind, lane, state, attempts, created_at, updated_at, title, quarantine";
const HEAD_COLUMNS = `${SUMMARY_COLUMNS}, voided_attempts, next_seq, leased_by, not_before, last_error, outcome, cancellation_request`;
const ALL_COLUMNS = `${HEAD_COLUMNS}, idempotency_key, owner_session_id, owner_session_generation_id, submission_digest, used_artifact_refs, metadata, spec, trace`;

/** Column lists for statements on `jobs`. */
export const COLUMNS = { summary: SUMMARY_COLUMNS, head: HEAD_COLUMNS, all: ALL_COLUMNS } as const;

/** The whole row; job_not_found when there is none. */
export const jobRow = (r: Reading, jobId: string): JobRow =>
  r.sql.get<JobRow>(`SELECT ${ALL_COLUMNS} FROM jobs WHERE job_id = ?`, jobId) ?? missing(jobId);

/** The short columns; job_not_found when there is none. */
export const jobHead = (r: Reading, jobId: string): JobHead =>
  r.sql.get<JobHead>(`SELECT ${HEAD_COLUMNS} FROM jobs WHERE job_id = ?`, jobId) ?? missing(jobId);

/** A job's place in the other tables; job_not_found when there is none. */
export const jobSequence = (r: Reading, jobId: string): number =>
  r.sql.get<{ sequence: number }>("SELECT sequence FROM jobs WHERE job_id = ?", jobId)?.sequence ?? missing(jobId);

function missing(jobId: string): never {
  throw new RelayError("job_not_found", `there is no job ${jobId}`, { job_id: jobId });
}

/** The record of a row that this queue wrote. A row whose JSON cannot be parsed is queue_corrupt. */
export function toJob(row: JobRow): Job {
  return unchecked(row, (column, text) => {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw unreadableJob(row.job_id, `${column} is not JSON`, error);
    }
  }) as Job;
}

export const unreadableJob = (jobId: string, reason: string, cause?: unknown): RelayError =>
  new RelayError("queue_corrupt", `the record of ${jobId} cannot be read: ${reason}`, { job_id: jobId }, undefined, { cause });

/** The record of a row whoever wrote it, checked against its schema; or why it cannot be read. */
export function checkJob(row: JobRow): { readonly job: Job } | { readonly unreadable: string } {
  let raw: unknown;
  try {
    raw = toJob(row);
  } catch (error) {
    return { unreadable: error instanceof Error ? error.message : String(error) };
  }
  const parsed = v.safeParse(Job, raw);
  if (parsed.success) return { job: parsed.output };
  const [issue] = parsed.issues;
  return { unreadable: `the record of ${row.job_id} cannot be read: ${v.getDotPath(issue) ?? "record"}: ${issue.message}` };
}

function unchecked(row: JobRow, parse: (column: string, text: string) => unknown): unknown {
  const optional = (column: string, text: string | null): unknown => (text === null ? null : parse(column, text));
  return {
    job_id: row.job_id,
    sequence: row.sequence,
    cluster: row.cluster,
    kind: row.kind,
    lane: row.lane,
    state: row.state,
    spec: parse("spec", row.spec),
    idempotency_key: row.idempotency_key,
    owner_session_id: row.owner_session_id,
    owner_session_generation_id: row.owner_session_generation_id,
    used_artifact_refs: parse("used_artifact_refs", row.used_artifact_refs),
    submission_digest: row.submission_digest,
    created_at: row.created_at,
    updated_at: row.updated_at,
    leased_by: row.leased_by,
    attempts: row.attempts,
    last_error: row.last_error,
    outcome: optional("outcome", row.outcome),
    cancellation_request: optional("cancellation_request", row.cancellation_request),
    not_before: row.not_before,
    quarantine: row.quarantine,
    metadata: parse("metadata", row.metadata),
    trace: optional("trace", row.trace),
  };
}

/** A row of a list. */
export const toSummary = (row: JobHead | JobSummary): JobSummary => ({
  job_id: row.job_id,
  sequence: row.sequence,
  cluster: row.cluster,
  kind: row.kind,
  lane: row.lane,
  state: row.state,
  attempts: row.attempts,
  created_at: row.created_at,
  updated_at: row.updated_at,
  title: row.title,
  quarantine: row.quarantine,
});
