import * as v from "valibot";
import { Finite, Id, looseText, Metadata, Sequence, Timestamp, text } from "./primitives.ts";

const fields = {
  label: v.optional(text(256), "progress"),
  /** How far; in `unit`. */
  current: v.optional(v.nullable(Finite), null),
  /** How far in all; in `unit`. */
  total: v.optional(v.nullable(v.pipe(Finite, v.gtValue(0))), null),
  unit: v.optional(v.nullable(text(64)), null),
  message: v.optional(v.nullable(looseText(4_096)), null),
  source_event_seq: v.optional(v.nullable(Sequence), null),
  metadata: v.optional(Metadata, {}),
};

/** What a client or a job sends to report progress. */
export const NewProgress = v.strictObject(fields);
export type NewProgress = v.InferOutput<typeof NewProgress>;
export type NewProgressInput = v.InferInput<typeof NewProgress>;

/** One report of progress. Immutable; the latest per label is the current one. */
export const Progress = v.strictObject({
  progress_id: Id,
  job_id: Id,
  /** From 1 within the job. */
  sequence: Sequence,
  label: text(256),
  current: v.nullable(Finite),
  total: v.nullable(Finite),
  unit: v.nullable(text(64)),
  message: v.nullable(looseText(4_096)),
  source_event_seq: v.nullable(Sequence),
  metadata: Metadata,
  created_at: Timestamp,
});
export type Progress = v.InferOutput<typeof Progress>;
