import type { Job, Lane } from "../../domain/job.ts";
import { JOB_KINDS } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { isTerminal } from "../../domain/transitions.ts";
import type { JobSummary } from "../../domain/views.ts";
import type { JobFilter, PageRequest, QueueWindow } from "../store.ts";
import type { Reading } from "./access.ts";
import { COLUMNS, jobHead, jobRow, toJob, toSummary } from "./job-rows.ts";

/** Rows that are fetched at a time while a filter looks for the few that it wants. */
const CHUNK = 256;

export const job = (r: Reading, jobId: string): Job => toJob(jobRow(r, jobId));

type Direction = "ascending" | "descending";

/** A filter for jobs that have not ended is served by the index of these, so that a long history costs it nothing. */
const onlyActive = ({ states }: JobFilter): boolean => states !== undefined && !states.some(isTerminal);

const IS_ACTIVE = "state IN ('queued', 'leased', 'running')";
const ALL_JOBS: Readonly<Record<Direction, string>> = {
  ascending: `SELECT ${COLUMNS.summary} FROM jobs WHERE sequence >= ? ORDER BY sequence LIMIT ?`,
  descending: `SELECT ${COLUMNS.summary} FROM jobs WHERE sequence < ? ORDER BY sequence DESC LIMIT ?`,
};
export const ACTIVE_JOBS: Readonly<Record<Direction, string>> = {
  ascending: `SELECT ${COLUMNS.summary} FROM jobs WHERE sequence >= ? AND ${IS_ACTIVE} ORDER BY sequence LIMIT ?`,
  descending: `SELECT ${COLUMNS.summary} FROM jobs WHERE sequence < ? AND ${IS_ACTIVE} ORDER BY sequence DESC LIMIT ?`,
};

/** By the index of ids, however long the history is. Digits of an id are below `g`. */
const JOBS_OF_PREFIX = `SELECT ${COLUMNS.summary} FROM jobs INDEXED BY sqlite_autoindex_jobs_1
  WHERE job_id >= ? AND job_id < ? AND sequence < ? ORDER BY sequence DESC LIMIT ?`;

interface Scan {
  readonly jobs: JobSummary[];
  /** The last row that was looked at; null when there was none. */
  readonly last: number | null;
  /** Rows were left that nobody has looked at. */
  readonly more: boolean;
  /** It ended because `scanLimit` rows had been looked at. */
  readonly exhausted: boolean;
}

/** Look at up to `scanLimit` jobs in order, until `limit` of them pass the filter. */
function scan(r: Reading, filter: JobFilter, direction: Direction, from: number, limit: number, scanLimit: number): Scan {
  const byId = direction === "descending" && filter.idPrefix !== undefined;
  const sql = byId ? JOBS_OF_PREFIX : (onlyActive(filter) ? ACTIVE_JOBS : ALL_JOBS)[direction];
  const range = byId ? [filter.idPrefix!, `${filter.idPrefix}g`] : [];
  const wanted = matcher(filter);
  const jobs: JobSummary[] = [];
  let last: number | null = null;
  let looked = 0;
  while (looked < scanLimit && jobs.length < limit) {
    const start: number = last === null ? from : direction === "ascending" ? last + 1 : last;
    const rows = r.sql.all<JobSummary>(sql, ...range, start, Math.min(CHUNK, scanLimit - looked));
    for (const row of rows) {
      looked += 1;
      last = row.sequence;
      if (wanted(row)) jobs.push(toSummary(row));
      if (jobs.length === limit) break;
    }
    if (rows.length === 0) break;
  }
  const beyond = last === null ? from : direction === "ascending" ? last + 1 : last;
  const more = r.sql.get(sql, ...range, beyond, 1) !== null;
  return { jobs, last, more, exhausted: more && jobs.length < limit };
}

function matcher({ states, kind, withoutInputs, cluster, idPrefix = "" }: JobFilter): (row: JobSummary) => boolean {
  const wanted = states === undefined ? null : new Set(states);
  return (row) =>
    (wanted === null || wanted.has(row.state)) &&
    (kind === undefined || row.kind === kind) &&
    (withoutInputs !== true || row.kind !== "input_ingest") &&
    (cluster === undefined || row.cluster === cluster) &&
    row.job_id.startsWith(idPrefix);
}

/** Newest first. At most queueScanMax jobs are looked at; `next_before` then says where to go on, however few were found. */
export function recentJobs(
  r: Reading,
  filter: JobFilter,
  before: number | null,
  limit: number,
): { jobs: readonly JobSummary[]; next_before: number | null } {
  const { jobs, last, more } = scan(r, filter, "descending", before ?? Number.MAX_SAFE_INTEGER, limit, LIMITS.queueScanMax);
  return { jobs, next_before: more ? last : null };
}

export function queueWindow(r: Reading, filter: JobFilter, page: PageRequest, scanLimit: number): QueueWindow {
  const { jobs, last, more, exhausted } = scan(r, filter, "ascending", page.cursor, page.limit, scanLimit);
  return { jobs, next_cursor: more ? (last ?? page.cursor - 1) + 1 : null, total: r.counts.total, scan_truncated: exhausted };
}

const KIND_LIST = JOB_KINDS.map((kind) => `'${kind}'`).join(", ");

/** Counted in the indexes of ready and of delayed jobs; quarantined ones stand in nobody's way. */
export function jobsAhead(r: Reading, jobId: string): number | null {
  const { state, lane, sequence } = jobHead(r, jobId);
  if (state !== "queued") return null;
  return count(r, READY_AHEAD, lane, sequence) + count(r, DELAYED_AHEAD, lane, sequence);
}

const count = (r: Reading, sql: string, lane: Lane, sequence: number): number => r.sql.get<{ n: number }>(sql, lane, sequence)?.n ?? 0;

export const READY_AHEAD = `SELECT count(*) AS n FROM jobs WHERE lane = ? AND kind IN (${KIND_LIST}) AND ready = 1 AND sequence < ?`;

const DELAYED_AHEAD =
  "SELECT count(*) AS n FROM jobs INDEXED BY jobs_delayed WHERE not_before IS NOT NULL AND quarantine IS NULL AND lane = ? AND sequence < ?";
