import { LIMITS } from "../../domain/limits.ts";
import type { Page } from "../../domain/page.ts";
import type { Metadata } from "../../domain/primitives.ts";
import type { NewProgress, Progress } from "../../domain/progress.ts";
import { newId } from "../../lib/ids.ts";
import type { LatestProgress, PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { JobEdit } from "./job-edit.ts";
import { jobHead, jobSequence } from "./job-rows.ts";
import { pageOf, rowsOfPage } from "./pages.ts";
import { boundedJson, parsed, storable } from "./record-json.ts";

const LABELS_MAX = 100;
/** Text of all reports that latestProgress gives, in bytes of UTF-8. It is part of every status of the job. */
const LATEST_BYTES = 1024 * 1024;
const COLUMNS = "sequence, progress_id, label, current, total, unit, message, source_event_seq, metadata, created_at";
const BYTES = "octet_length(p.label) + coalesce(octet_length(p.message), 0) + octet_length(p.metadata)";

type ProgressRow = Omit<Progress, "job_id" | "metadata"> & { readonly metadata: string };

const toProgress =
  (jobId: string) =>
  (row: ProgressRow): Progress => ({
    ...row,
    job_id: jobId,
    metadata: parsed<Metadata>(row.metadata, `progress ${row.sequence} of ${jobId}`),
  });

/** How many reports there are; they are numbered without gaps. */
const lastSequence = (r: Reading, job: number): number =>
  r.sql.get<{ last: number | null }>("SELECT max(sequence) AS last FROM progress WHERE job = ?", job)?.last ?? 0;

export function recordProgress(w: Writing, jobId: string, progress: NewProgress): Progress {
  const edit = new JobEdit(w, jobHead(w, jobId));
  const recorded = appendProgress(w, edit, progress);
  edit.save();
  return recorded;
}

/** Add a report, with an event that tells the job's followers. Callers save the edit. */
export function appendProgress(w: Writing, edit: JobEdit, progress: NewProgress): Progress {
  const { row } = edit;
  const recorded: Progress = {
    progress_id: newId("progress"),
    job_id: row.job_id,
    sequence: lastSequence(w, row.sequence) + 1,
    label: storable(progress.label),
    current: progress.current,
    total: progress.total,
    unit: progress.unit === null ? null : storable(progress.unit),
    message: progress.message === null ? null : storable(progress.message),
    source_event_seq: progress.source_event_seq,
    metadata: progress.metadata,
    created_at: w.now,
  };
  boundedJson(recorded, LIMITS.eventRecordBytes, "the progress report");
  w.sql.run(
    `INSERT INTO progress (job, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    row.sequence,
    recorded.sequence,
    recorded.progress_id,
    recorded.label,
    recorded.current,
    recorded.total,
    recorded.unit,
    recorded.message,
    recorded.source_event_seq,
    JSON.stringify(recorded.metadata),
    recorded.created_at,
  );
  const { metadata: _metadata, job_id: _job, created_at: _at, source_event_seq: _source, ...payload } = recorded;
  edit.event({ event_type: "progress.updated", message: sentence(recorded), payload });
  return recorded;
}

function sentence({ label, current, total, unit, message }: Progress): string {
  const amount = current === null ? "" : `${current}${total === null ? "" : ` of ${total}`}${unit === null ? "" : ` ${unit}`}`;
  return [label, [amount, message ?? ""].filter((part) => part !== "").join(", ")].filter((part) => part !== "").join(": ");
}

export function progress(r: Reading, jobId: string, page: PageRequest): Page<Progress> {
  const job = jobSequence(r, jobId);
  const sizes = r.sql.all<{ bytes: number }>(
    `SELECT ${BYTES} AS bytes FROM progress AS p WHERE job = ? AND sequence >= ? ORDER BY sequence LIMIT ?`,
    job,
    page.cursor,
    page.limit,
  );
  const rows = r.sql.all<ProgressRow>(
    `SELECT ${COLUMNS} FROM progress WHERE job = ? AND sequence >= ? ORDER BY sequence LIMIT ?`,
    job,
    page.cursor,
    rowsOfPage(sizes),
  );
  return pageOf(rows, (row) => row.sequence, toProgress(jobId), page, lastSequence(r, job));
}

/** Steps from label to label through the index, so that it costs as much as there are labels and not as there are reports. */
const LATEST = `
  WITH RECURSIVE labels (label, n) AS (
    SELECT min(label), 1 FROM progress WHERE job = ?1
    UNION ALL
    SELECT (SELECT min(label) FROM progress WHERE job = ?1 AND label > labels.label), n + 1 FROM labels WHERE label IS NOT NULL AND n < ?2)
  SELECT p.sequence, ${BYTES} AS bytes
  FROM labels CROSS JOIN progress AS p
  WHERE labels.label IS NOT NULL AND p.job = ?1
    AND p.sequence = (SELECT max(sequence) FROM progress WHERE job = ?1 AND label = labels.label)`;

/** In the order of the labels. A report that no longer fits is left out, and smaller ones after it are not. */
export function latestProgress(r: Reading, jobId: string): LatestProgress {
  const job = jobSequence(r, jobId);
  const found = r.sql.all<{ sequence: number; bytes: number }>(LATEST, job, LABELS_MAX + 1);
  let left = LATEST_BYTES;
  const items = found.slice(0, LABELS_MAX).flatMap(({ sequence, bytes }) => {
    if (bytes > left) return [];
    left -= bytes;
    return r.sql.all<ProgressRow>(`SELECT ${COLUMNS} FROM progress WHERE job = ? AND sequence = ?`, job, sequence).map(toProgress(jobId));
  });
  return { items, truncated: items.length < found.length };
}
