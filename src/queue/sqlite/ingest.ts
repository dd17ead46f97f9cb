import type { EmitLine } from "../../domain/emit-line.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { LogStream, StreamCapture } from "../../domain/log.ts";
import type { Fence, Ingest, Notice } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { openHead } from "./attempt-rows.ts";
import { JobEdit } from "./job-edit.ts";
import { type JobHead, jobSequence, unreadableJob } from "./job-rows.ts";
import { appendProgress } from "./progress.ts";
import { type SegmentRow, segmentRow } from "./segments.ts";
import { appendTaskEvent, firstTask, namedTask } from "./tasks.ts";

/** Longer pieces are left to the log's own routes. */
const TEXT_MAX = 8_192;

/** Turn what an attempt's files have gained into records, and move the positions on with them. */
export function ingest(w: Writing, fence: Fence, batch: Ingest): void {
  const { row } = openHead(w, fence);
  const edit = new JobEdit(w, row);
  for (const { stream, bytes, text } of batch.deltas) {
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw new RelayError("internal_error", `${bytes} is no number of bytes`, { ...fence });
    if (bytes > 0) advance(w, edit, currentSegment(w, edit.row, fence.attempt, stream), bytes, text);
  }
  for (const { stream, capture } of batch.truncations)
    recordTruncation(w, edit, currentSegment(w, edit.row, fence.attempt, stream), capture);
  for (const emit of batch.emits) {
    moveOffset(w, row.sequence, fence, emit.file, emit.offset, emit.next_offset);
    for (const line of emit.lines) recordLine(w, edit, emit.file, line);
  }
  for (const notice of batch.notices ?? []) recordNotice(w, edit, fence.attempt, notice);
  edit.save();
}

/** Positions of an attempt's event files. Reading them needs no open attempt. */
export function emitOffsets(r: Reading, fence: Fence): ReadonlyMap<string, number> {
  const rows = r.sql.all<{ file: string; next_offset: number }>(
    "SELECT file, next_offset FROM emit_offsets WHERE job = ? AND attempt = ?",
    jobSequence(r, fence.job_id),
    fence.attempt,
  );
  return new Map(rows.map(({ file, next_offset }) => [file, next_offset]));
}

/** The attempt has ended: account for the stream, with an event for whatever had none yet, so that events cover every kept byte. */
export function closeSegment(w: Writing, edit: JobEdit, attempt: number, stream: LogStream, capture: StreamCapture): void {
  const segment = currentSegment(w, edit.row, attempt, stream);
  if (capture.kept > segment.length) advance(w, edit, segment, capture.kept - segment.length, null);
  const final = capture.kept < segment.length ? keeping(capture, segment.length) : capture;
  if (final.truncated !== null) recordTruncation(w, edit, segment, final);
  w.sql.run(
    "UPDATE segments SET capture = ? WHERE job = ? AND attempt = ? AND stream = ?",
    JSON.stringify(final),
    edit.row.sequence,
    attempt,
    stream,
  );
}

/** The same accounting of a stream of which more was recorded than it counts as kept: what was recorded has its place in the log for ever. */
export const keeping = (capture: StreamCapture, length: number): StreamCapture => ({
  ...capture,
  kept: length,
  observed: length + capture.dropped,
  complete: false,
});

function currentSegment(w: Writing, row: JobHead, attempt: number, stream: LogStream): SegmentRow {
  const segment = segmentRow(w, row.sequence, attempt, stream);
  if (segment === null) throw unreadableJob(row.job_id, `the ${stream} segment of attempt ${attempt} is missing`);
  return segment;
}

function advance(w: Writing, edit: JobEdit, segment: SegmentRow, bytes: number, text: string | null): void {
  const { stream } = segment;
  const offset = segment.base + segment.length;
  edit.event({
    event_type: `${stream}.delta`,
    message: `${bytes} ${bytes === 1 ? "byte" : "bytes"} on ${stream}`,
    payload: {
      stream,
      offset,
      next_offset: offset + bytes,
      ...(text === null || text === "" || text.length > TEXT_MAX ? {} : { text }),
    },
  });
  w.sql.run(
    "UPDATE segments SET length = length + ? WHERE job = ? AND attempt = ? AND stream = ?",
    bytes,
    edit.row.sequence,
    segment.attempt,
    stream,
  );
}

const WHY = {
  stream_quota: "the stream's quota is used up",
  job_quota: "the job's quota for output is used up",
  disk_full: "the disk is full",
} as const;

/** One event a stream and attempt, however often it is reported. */
function recordTruncation(w: Writing, edit: JobEdit, segment: SegmentRow, capture: StreamCapture): void {
  if (segment.truncated_seq !== null) return;
  const why = capture.truncated === null ? "" : `: ${WHY[capture.truncated]}`;
  const seq = edit.event({
    event_type: `${segment.stream}.truncated`,
    level: "warning",
    message: `${segment.stream} is no longer kept after ${capture.kept} bytes of this attempt${why}; the job goes on`,
    payload: { attempt: segment.attempt, stream: segment.stream, ...capture },
  });
  w.sql.run(
    "UPDATE segments SET truncated_seq = ? WHERE job = ? AND attempt = ? AND stream = ?",
    seq,
    edit.row.sequence,
    segment.attempt,
    segment.stream,
  );
}

function moveOffset(w: Writing, job: number, fence: Fence, file: string, offset: number, next: number): void {
  const stored =
    w.sql.get<{ next_offset: number }>(
      "SELECT next_offset FROM emit_offsets WHERE job = ? AND attempt = ? AND file = ?",
      job,
      fence.attempt,
      file,
    )?.next_offset ?? 0;
  if (offset !== stored || next < offset) {
    throw new RelayError("state_conflict", `${file} was read up to ${stored}, not up to ${offset}`, { ...fence, file, offset, stored });
  }
  w.sql.run(
    `INSERT INTO emit_offsets (job, attempt, file, next_offset) VALUES (?, ?, ?, ?)
     ON CONFLICT (job, attempt, file) DO UPDATE SET next_offset = excluded.next_offset`,
    job,
    fence.attempt,
    file,
    next,
  );
}

/**
 * A line whose record would be too large becomes a refusal, in a savepoint of its own: a record takes more bytes than its line did, and a
 * line that is never passed over would keep the whole file, and the end of its job, waiting.
 */
function recordLine(w: Writing, edit: JobEdit, file: string, line: EmitLine): void {
  if (line.type === "refused") {
    refuseLine(edit, file, line.reason);
    return;
  }
  const seq = edit.row.next_seq;
  w.sql.run("SAVEPOINT one_line");
  try {
    if (line.type === "progress") appendProgress(w, edit, line.progress);
    else appendTaskEvent(w, edit, line.task === undefined ? firstTask(w, edit.row) : namedTask(w, edit.row, line.task), line.event);
  } catch (error) {
    if (!isRelayError(error, "payload_too_large")) throw error;
    w.sql.run("ROLLBACK TO one_line");
    edit.row.next_seq = seq;
    refuseLine(edit, file, error.message);
  }
  w.sql.run("RELEASE one_line");
}

function refuseLine(edit: JobEdit, file: string, reason: string): void {
  edit.event({
    event_type: "emit.refused",
    level: "warning",
    message: `A line of ${file} was skipped: ${reason}`,
    payload: { file, reason: reason.slice(0, 2_000) },
  });
}

/** A look at the attempt's events of that type, which are few: a notice is told of seldom. */
function recordNotice(w: Writing, edit: JobEdit, attempt: number, { about, event }: Notice): void {
  const told = w.sql.get(
    `SELECT 1 FROM events WHERE job = ? AND event_type = ?
       AND json_valid(payload) AND payload ->> '$.attempt' = ? AND payload ->> '$.about' = ? LIMIT 1`,
    edit.row.sequence,
    event.event_type,
    attempt,
    about,
  );
  if (told === null) edit.event({ ...event, payload: { ...event.payload, attempt, about } });
}
