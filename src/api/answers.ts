/** What operations of a worker answer with. Records are here, too, so that a client loads what it checks answers with in one piece. */
import * as v from "valibot";
import { Artifact } from "../domain/artifact.ts";
import { Attempt } from "../domain/attempt.ts";
import { Event } from "../domain/event.ts";
import { ContentAnswer, InputRecord, Upload } from "../domain/input.ts";
import { Job, JobReceipt } from "../domain/job.ts";
import { EdgeCursor, UsedArtifactRef } from "../domain/lineage.ts";
import { LinkKeys, PairingCodeMade, Revoked, Rotation } from "../domain/link-keys.ts";
import { LogChunk, LogSegment } from "../domain/log.ts";
import { pageOf } from "../domain/page.ts";
import { PipelineInputs } from "../domain/pipeline.ts";
import { Count, recordOf, Sequence } from "../domain/primitives.ts";
import { Progress } from "../domain/progress.ts";
import { Task, TaskEvent } from "../domain/task.ts";
import { TransformRef } from "../domain/transform.ts";
import { JobStatus, JobSummary, JobWaitResult, SchedulerCanceled, SchedulerObserved, WorkerStatus } from "../domain/views.ts";

/** Records and pages of them. */
export const RECORDS = {
  Artifact,
  Attempt,
  ContentAnswer,
  Event,
  InputRecord,
  Job,
  JobReceipt,
  JobStatus,
  JobWaitResult,
  LinkKeys,
  LogChunk,
  PairingCodeMade,
  PipelineInputs,
  Progress,
  Revoked,
  Rotation,
  SchedulerCanceled,
  SchedulerObserved,
  Task,
  TaskEvent,
  TransformRef,
  Upload,
  pageOf,
} as const;

export const Health = v.strictObject({ ok: v.literal(true), auth: v.boolean(), version: v.string(), cluster: v.string() });

export const JobList = v.strictObject({ jobs: v.array(JobSummary), next_before: v.nullable(v.number()) });

/** GET /queue: filters apply inside a window over the order of submission. */
export const QueueListing = v.strictObject({
  jobs: v.array(JobSummary),
  count: v.number(),
  source_cursor: Sequence,
  source_limit: Sequence,
  source_next_cursor: v.nullable(Sequence),
  source_total: v.number(),
  source_total_semantics: v.literal("all_jobs"),
  filters_apply_within_source_window: v.literal(true),
  result_truncated: v.boolean(),
  scan_limit: Sequence,
  scan_truncated: v.boolean(),
  active_job_capacity: v.number(),
});
export type QueueListing = v.InferOutput<typeof QueueListing>;

export const WorkerList = v.strictObject({ workers: v.array(WorkerStatus), worker_count: v.number() });

const Finding = v.strictObject({ check: v.string(), subject: v.string(), detail: v.string(), repairable: v.boolean() });
export const Audit = v.strictObject({
  ok: v.boolean(),
  checked: recordOf(v.string(), v.number()),
  findings: v.array(Finding),
  truncated: v.boolean(),
});
export const Repair = v.strictObject({ repaired: v.array(Finding), remaining: v.array(Finding), truncated: v.boolean() });

/** The status document with a page of events. */
export const Monitor = v.strictObject({ ...JobStatus.entries, events: v.array(Event), next_cursor: Sequence });
export type Monitor = v.InferOutput<typeof Monitor>;

export const AttemptLogs = v.strictObject({ segments: v.array(LogSegment) });

/** A page of edges: its cursors say nothing. */
export const edgePage = <K extends string>(key: K) =>
  v.strictObject({
    ...({ [key]: v.array(UsedArtifactRef) } as Record<K, v.ArraySchema<typeof UsedArtifactRef, undefined>>),
    cursor: EdgeCursor,
    limit: Sequence,
    /** Where to go on, also at the end. */
    next_cursor: EdgeCursor,
    total: Count,
  });
