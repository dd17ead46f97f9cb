import * as v from "valibot";
import { Id, looseText, Metadata, Sequence, Timestamp, text } from "./primitives.ts";

/** Names of the events that the relay itself writes. Jobs cannot write events of these names. */
export const EVENT_TYPES = [
  "job.queued",
  "job.leased",
  "job.running",
  "job.requeued",
  "job.cancel_requested",
  "job.cancel_acknowledged",
  "job.succeeded",
  "job.failed",
  "job.canceled",
  "job.quarantined",
  "task.queued",
  "task.event",
  "stdout.delta",
  "stderr.delta",
  "stdout.truncated",
  "stderr.truncated",
  "artifact.created",
  "artifact.refused",
  "progress.updated",
  "emit.refused",
  "jarvis.started",
  "jarvis.dispatch_refused",
  "jarvis.execution_recovery_attached",
  "runtime.metadata_ingested",
  "runtime.metadata_refused",
  "runtime.metadata_untrusted",
  "execution.delayed",
  "execution.input_changed",
  "execution.started",
  "execution.adopted",
  "execution.timeout",
  "execution.restart_reconciled",
  "execution.outcome_unknown",
  "execution.leftover",
  "execution.out_of_memory",
  "execution.output_incomplete",
  "execution.residual",
  "execution.spool_damaged",
  "scheduler.directives_removed",
  "scheduler.job_detected",
  "scheduler.reconciliation_unresolved",
  "scheduler.job_pending",
  "scheduler.job_allocated",
  "scheduler.job_running",
  "scheduler.job_completed",
  "scheduler.job_unknown",
  "scheduler.cancel_requested",
  "scheduler.cancel_failed",
  "scheduler.cancel_refused",
] as const;
export const EventType = v.picklist(EVENT_TYPES);
export type EventType = v.InferOutput<typeof EventType>;

export const EventLevel = v.picklist(["info", "warning", "error"]);
export type EventLevel = v.InferOutput<typeof EventLevel>;

/** One entry of a job's history. Immutable. */
export const Event = v.strictObject({
  job_id: Id,
  /** From 1 within the job, without gaps, across restarts. */
  seq: Sequence,
  event_type: EventType,
  message: looseText(2_000),
  level: EventLevel,
  payload: Metadata,
  created_at: Timestamp,
});
export type Event = v.InferOutput<typeof Event>;

/** An event before the store gives it its place. */
export interface NewEvent {
  readonly event_type: EventType;
  readonly message: string;
  readonly level?: EventLevel;
  readonly payload?: Metadata;
}

/** Payload of stdout.delta and stderr.delta: the bytes lie in the job's log at [offset, next_offset). */
export const DeltaPayload = v.strictObject({
  stream: v.picklist(["stdout", "stderr"]),
  offset: v.number(),
  next_offset: v.number(),
  /** The bytes as text, where they are few; absent otherwise, or where they are not UTF-8. */
  text: v.optional(text(8_192)),
});
export type DeltaPayload = v.InferOutput<typeof DeltaPayload>;
