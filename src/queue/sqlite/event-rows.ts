import type { NewEvent } from "../../domain/event.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { Writing } from "./access.ts";
import { boundedJson, storable } from "./record-json.ts";

const MESSAGE_MAX = 2_000;

/** Insert only; JobEdit gives out the seq. */
export function insertEvent(w: Writing, job: number, seq: number, event: NewEvent): void {
  w.sql.run(
    "INSERT INTO events (job, seq, event_type, message, level, payload, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
    job,
    seq,
    event.event_type,
    storable(event.message, MESSAGE_MAX),
    event.level ?? "info",
    event.payload === undefined ? "{}" : boundedJson(event.payload, LIMITS.eventRecordBytes, `the payload of ${event.event_type}`),
    w.now,
  );
}
