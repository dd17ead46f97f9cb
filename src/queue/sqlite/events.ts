import type { Event, EventLevel, EventType, NewEvent } from "../../domain/event.ts";
import type { Page } from "../../domain/page.ts";
import type { Metadata } from "../../domain/primitives.ts";
import type { PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { JobEdit } from "./job-edit.ts";
import { jobHead } from "./job-rows.ts";
import { pageOf, rowsWithin, textBytes } from "./pages.ts";
import { parsed } from "./record-json.ts";

interface EventRow {
  readonly seq: number;
  readonly event_type: EventType;
  readonly message: string;
  readonly level: EventLevel;
  readonly payload: string;
  readonly created_at: string;
}

/** Append to a job's history, whatever its state. */
export function appendEvents(w: Writing, jobId: string, added: readonly NewEvent[]): void {
  const edit = new JobEdit(w, jobHead(w, jobId));
  for (const event of added) edit.event(event);
  edit.save();
}

/** The events from `cursor` on; job_not_found for an unknown job. */
export function events(r: Reading, jobId: string, page: PageRequest): Page<Event> {
  const job = jobHead(r, jobId);
  const rows = rowsWithin(
    page,
    (from, limit) =>
      r.sql.all<EventRow>(
        "SELECT seq, event_type, message, level, payload, created_at FROM events WHERE job = ? AND seq >= ? ORDER BY seq LIMIT ?",
        job.sequence,
        from,
        limit,
      ),
    ({ seq }) => seq,
    ({ message, payload }) => textBytes(message, payload),
  );
  return pageOf(
    rows,
    (row) => row.seq,
    (row) => toEvent(row, jobId),
    page,
    job.next_seq - 1,
  );
}

const toEvent = (row: EventRow, jobId: string): Event => ({
  ...row,
  job_id: jobId,
  payload: parsed<Metadata>(row.payload, `event ${row.seq} of ${jobId}`),
});

/** Of so many events at the end of a job the newest is looked for. */
const LATEST_AMONG = 10_000;

/** The newest event of a type whose payload has that member; job_not_found for an unknown job. */
export function latestEvent(r: Reading, jobId: string, type: EventType, member: string): Event | null {
  const job = jobHead(r, jobId);
  const row = r.sql.get<EventRow>(
    `SELECT seq, event_type, message, level, payload, created_at FROM events WHERE job = ? AND seq >= ? AND event_type = ?
      AND CASE WHEN json_valid(payload) THEN json_extract(payload, '$.' || ?) END IS NOT NULL ORDER BY seq DESC LIMIT 1`,
    job.sequence,
    job.next_seq - LATEST_AMONG,
    type,
    member,
  );
  return row === null ? null : toEvent(row, jobId);
}
