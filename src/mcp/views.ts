import * as v from "valibot";
import { Artifact } from "../domain/artifact.ts";
import { Event } from "../domain/event.ts";
import { type Job, JobKind, JobState, OutcomeReason } from "../domain/job.ts";
import { LogStream } from "../domain/log.ts";
import { ByteCount, Count, Id, jsonBytes, Sequence, Sha256, Timestamp } from "../domain/primitives.ts";
import type { Progress } from "../domain/progress.ts";
import { titleOf } from "../domain/title.ts";
import { isTerminal } from "../domain/transitions.ts";
import type { JobStatus, JobSummary } from "../domain/views.ts";
import type { Place } from "./clusters.ts";

/** What one answer holds at most, as JSON. */
export const INLINE_BYTES = 64 * 1024;
/** The most that is read of a log for one answer. */
export const LOG_BYTES = 32 * 1024;
/** Payloads of events that are longer are left out. */
const PAYLOAD_BYTES = 2 * 1024;

/** Objects of answers say nothing of further members: a later version may have more. */
const Outcome = v.object({
  reason: OutcomeReason,
  exit_code: v.nullable(v.number()),
  signal: v.nullable(v.string()),
  message: v.string(),
});

/** A job as agents see it: all but what it was submitted with. */
export const JobView = {
  cluster: Id,
  job_id: Id,
  route_revision: v.pipe(Sha256, v.description("give it back with cluster, so that the job is looked for where it was")),
  kind: JobKind,
  state: JobState,
  terminal: v.boolean(),
  title: v.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
  attempts: Count,
  outcome: v.nullable(Outcome),
  last_error: v.nullable(v.string()),
  cancel_requested: v.boolean(),
};
const JobObject = v.object(JobView);
export type JobView = v.InferOutput<typeof JobObject>;

type SomeJob = Pick<Job, "job_id" | "kind" | "state" | "created_at" | "updated_at" | "attempts"> &
  Pick<Job, "outcome" | "last_error" | "cancellation_request" | "spec" | "metadata">;

export function jobView({ entry, route_revision }: Pick<Place, "entry" | "route_revision">, job: SomeJob): JobView {
  const { outcome } = job;
  return {
    cluster: entry.name,
    job_id: job.job_id,
    route_revision,
    kind: job.kind,
    state: job.state,
    terminal: isTerminal(job.state),
    title: titleOf(job as Parameters<typeof titleOf>[0]),
    created_at: job.created_at,
    updated_at: job.updated_at,
    attempts: job.attempts,
    outcome:
      outcome === null ? null : { reason: outcome.reason, exit_code: outcome.exit_code, signal: outcome.signal, message: outcome.message },
    last_error: job.last_error,
    cancel_requested: job.cancellation_request !== null,
  };
}

const ProgressView = v.object({
  label: v.string(),
  current: v.nullable(v.number()),
  total: v.nullable(v.number()),
  unit: v.nullable(v.string()),
  message: v.nullable(v.string()),
  created_at: Timestamp,
});

export const progressView = ({ label, current, total, unit, message, created_at }: Progress): v.InferOutput<typeof ProgressView> => ({
  label,
  current,
  total,
  unit,
  message,
  created_at,
});

/** What is known of a job without its events. */
export const StatusView = {
  ...JobView,
  obstacle: v.nullable(v.pipe(v.string(), v.description("what keeps it from starting"))),
  queue_position: v.nullable(Count),
  started_at: v.nullable(Timestamp),
  ended_at: v.nullable(Timestamp),
  progress: v.array(ProgressView),
  logs: v.array(v.object({ stream: LogStream, size_bytes: ByteCount, dropped_bytes: ByteCount })),
};
const StatusObject = v.object(StatusView);
export type StatusView = v.InferOutput<typeof StatusObject>;

const PROGRESS_SHOWN = 20;

export function statusView(place: Pick<Place, "entry" | "route_revision">, status: JobStatus): StatusView {
  return {
    ...jobView(place, status.job),
    obstacle: status.obstacle,
    queue_position: status.relay_queue.position,
    started_at: status.attempt?.started_at ?? null,
    ended_at: status.attempt?.ended_at ?? null,
    progress: status.progress.slice(0, PROGRESS_SHOWN).map(progressView),
    logs: status.logs.map(({ stream, size_bytes, capture }) => ({ stream, size_bytes, dropped_bytes: capture?.dropped ?? 0 })),
  };
}

export const SummaryView = v.object({
  job_id: Id,
  kind: JobKind,
  state: JobState,
  title: v.string(),
  attempts: Count,
  created_at: Timestamp,
  updated_at: Timestamp,
});

export const summaryView = ({ job_id, kind, state, title, attempts, created_at, updated_at }: JobSummary) => ({
  job_id,
  kind,
  state,
  title,
  attempts,
  created_at,
  updated_at,
});

export const EventView = v.object({
  seq: Sequence,
  event_type: v.string(),
  level: Event.entries.level,
  message: v.string(),
  payload: v.optional(v.record(v.string(), v.unknown())),
  payload_omitted: v.optional(v.pipe(v.boolean(), v.description("the payload is too long for here"))),
  created_at: Timestamp,
});
export type EventView = v.InferOutput<typeof EventView>;

export function eventView({ seq, event_type, level, message, payload, created_at }: Event): EventView {
  const shown =
    Object.keys(payload).length === 0 ? {} : jsonBytes(payload) <= PAYLOAD_BYTES ? { payload: { ...payload } } : { payload_omitted: true };
  return { seq, event_type, level, message, ...shown, created_at };
}

export const ArtifactView = v.object({
  artifact_id: Id,
  job_id: Id,
  kind: Artifact.entries.kind,
  name: v.string(),
  size_bytes: ByteCount,
  sha256: Sha256,
  readable: v.pipe(v.boolean(), v.description("whether relay_read_artifact gives its bytes")),
  created_at: Timestamp,
});
export type ArtifactView = v.InferOutput<typeof ArtifactView>;

/** What is said between programs, and may hold what is for them only. */
const PRIVATE: ReadonlySet<Artifact["kind"]> = new Set(["mcp_request", "mcp_result", "runtime_metadata"]);

export const isReadable = ({ kind }: Pick<Artifact, "kind">): boolean => !PRIVATE.has(kind);

export const artifactView = (artifact: Artifact): ArtifactView => ({
  artifact_id: artifact.artifact_id,
  job_id: artifact.job_id,
  kind: artifact.kind,
  name: artifact.name,
  size_bytes: artifact.size_bytes,
  sha256: artifact.sha256,
  readable: isReadable(artifact),
  created_at: artifact.created_at,
});

/**
 * As many of the first entries as one answer has room for, one at least.
 *
 * @param taken bytes that the rest of the answer takes
 */
export function fitting<T>(items: readonly T[], taken = 4_096): { readonly items: T[]; readonly truncated: boolean } {
  let room = INLINE_BYTES - taken;
  const fits: T[] = [];
  for (const item of items) {
    room -= jsonBytes(item) + 1;
    if (room < 0 && fits.length > 0) break;
    fits.push(item);
  }
  return { items: fits, truncated: fits.length < items.length };
}

export const TRUNCATED = v.pipe(v.boolean(), v.description("whether some were left out for want of room; go on from next_cursor"));
