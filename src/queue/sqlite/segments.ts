import { LOG_STREAMS, type LogSegment, type LogStream, type StreamCapture } from "../../domain/log.ts";
import type { Reading, Writing } from "./access.ts";
import { jobSequence } from "./job-rows.ts";
import { parsedOrNull } from "./record-json.ts";

export interface SegmentRow {
  readonly attempt: number;
  readonly stream: LogStream;
  readonly base: number;
  readonly length: number;
  /** seq of the event that says the stream was cut; null while it was not. */
  readonly truncated_seq: number | null;
  readonly capture: string | null;
}

const COLUMNS = "attempt, stream, base, length, truncated_seq, capture";

/** An attempt's output begins where that of the attempt before it ends. */
export function openSegments(w: Writing, job: number, attempt: number): void {
  for (const stream of LOG_STREAMS) {
    w.sql.run(
      `INSERT INTO segments (job, attempt, stream, base) VALUES (?1, ?2, ?3,
         coalesce((SELECT base + length FROM segments WHERE job = ?1 AND attempt = ?2 - 1 AND stream = ?3), 0))`,
      job,
      attempt,
      stream,
    );
  }
}

/** The segment of a stream of an attempt. */
export function segmentRow(r: Reading, job: number, attempt: number, stream: LogStream): SegmentRow | null {
  return r.sql.get<SegmentRow>(`SELECT ${COLUMNS} FROM segments WHERE job = ? AND attempt = ? AND stream = ?`, job, attempt, stream);
}

/** All segments of a job, by attempt, stderr first; job_not_found for an unknown job. */
export function segments(r: Reading, jobId: string): LogSegment[] {
  const job = jobSequence(r, jobId);
  return r.sql.all<SegmentRow>(`SELECT ${COLUMNS} FROM segments WHERE job = ? ORDER BY attempt, stream`, job).map((row) => ({
    job_id: jobId,
    attempt: row.attempt,
    stream: row.stream,
    base: row.base,
    length: row.length,
    capture: parsedOrNull<StreamCapture>(row.capture, `a log of ${jobId}`),
  }));
}
