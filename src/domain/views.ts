import * as v from "valibot";
import { Attempt, ProcessIdentity } from "./attempt.ts";
import { Capacity } from "./endpoint.ts";
import { JobInput } from "./input.ts";
import { Job, JobKind, JobState, jobWith, Lane } from "./job.ts";
import { LogStream, StreamCapture } from "./log.ts";
import { ByteCount, Count, Id, looseText, recordOf, Timestamp, text } from "./primitives.ts";
import { Progress } from "./progress.ts";
import { SchedulerJob, SchedulerName, SchedulerStatus } from "./scheduler.ts";
import { TransformRef } from "./transform.ts";

/** Where a job stands in the queue. */
export const QueuePosition = v.strictObject({
  state: JobState,
  /** Queued jobs of the same lane that were submitted earlier; null when the job is not queued. */
  jobs_ahead: v.nullable(Count),
  /** jobs_ahead + 1; null when the job is not queued. */
  position: v.nullable(Count),
});

/** What an attempt has at a scheduler, with the task that stands for it. */
export const JobScheduler = v.strictObject({ ...SchedulerJob.entries, task_name: text(256) });
export type JobScheduler = v.InferOutput<typeof JobScheduler>;

/** What a scheduler says of one of its jobs, and which attempt here it is; null where it is none. */
export const SchedulerObserved = v.strictObject({ ...SchedulerStatus.entries, job_id: v.nullable(Id), attempt: v.nullable(Count) });
export type SchedulerObserved = v.InferOutput<typeof SchedulerObserved>;

/** The answer to who asks for the end of a scheduler's job. */
export const SchedulerCanceled = v.strictObject({
  scheduler: SchedulerName,
  scheduler_job_id: text(128),
  job_id: Id,
  attempt: Count,
  /** Of the job here. */
  state: JobState,
  /** `terminal`: the scheduler has said before that it has ended. */
  disposition: v.picklist(["cancel_requested", "terminal"]),
});
export type SchedulerCanceled = v.InferOutput<typeof SchedulerCanceled>;

/** A pipeline's run as JARVIS-CD knows it. */
export const JarvisExecution = v.strictObject({
  execution_id: text(128),
  /** What JARVIS said last, also of a run that has ended; null where it has said nothing yet. */
  said: v.nullable(
    v.strictObject({
      pipeline_id: text(128),
      mode: v.picklist(["direct", "scheduler"]),
      /** preparing, submitting, submitted, running, completed, failed, canceled, unknown, or another word of JARVIS'. */
      state: text(64),
      /** As JARVIS writes it: RFC 3339 with microseconds. */
      updated_at: text(64),
      scheduler_native_id: v.nullable(text(256)),
    }),
  ),
});
export type JarvisExecution = v.InferOutput<typeof JarvisExecution>;

/** A job with all that a person asks about it. */
export const JobStatus = v.strictObject({
  job: Job,
  /** The current attempt; null before the first. */
  attempt: v.nullable(Attempt),
  /** What keeps the current attempt from starting, or its worker from looking after it; null where nothing does, or nobody knows. */
  obstacle: v.nullable(looseText(2_000)),
  relay_queue: QueuePosition,
  /** What its attempts have at a scheduler, in their order; absent from a worker of an earlier version. */
  scheduler: v.optional(v.nullable(v.array(JobScheduler))),
  /** Of a pipeline; null for jobs of other kinds, absent from a worker of an earlier version. */
  jarvis: v.optional(v.nullable(JarvisExecution)),
  /** What the job did to its inputs; null where nobody has recorded that. */
  transform: v.nullable(TransformRef),
  /** Its inputs, at most 100, in the order of their names. */
  inputs: v.array(JobInput),
  /** Latest report per label; not of all labels where progress_truncated says so. */
  progress: v.array(Progress),
  progress_truncated: v.boolean(),
  logs: v.array(v.strictObject({ stream: LogStream, size_bytes: ByteCount, capture: v.nullable(StreamCapture) })),
  terminal: v.boolean(),
});
export type JobStatus = v.InferOutput<typeof JobStatus>;

/** What a wait saw. Running out of time is an observation, never an outcome of the job. */
export const Observation = v.strictObject({
  outcome: v.picklist(["terminal", "observation_unknown"]),
  /** How long was to be waited at most; null for as long as it takes. */
  timeout_seconds: v.nullable(v.number()),
  scheduler_action: v.literal("none"),
  relay_action: v.literal("none"),
});
export type Observation = v.InferOutput<typeof Observation>;

/** A job with the observation that the wait made of it. */
export const JobWaitResult = jobWith({ observation: Observation });
export type JobWaitResult = v.InferOutput<typeof JobWaitResult>;

/** A row of a job list. */
export const JobSummary = v.strictObject({
  job_id: Id,
  sequence: Count,
  cluster: Id,
  kind: JobKind,
  lane: Lane,
  state: JobState,
  attempts: Count,
  created_at: Timestamp,
  updated_at: Timestamp,
  /** The command line or another short name of the work. */
  title: looseText(512),
  quarantine: v.nullable(looseText(2_000)),
});
export type JobSummary = v.InferOutput<typeof JobSummary>;

const MeetingPlace = v.strictObject({
  /** Address of the relay-host. */
  place: text(1_024),
  registered: v.boolean(),
  /** Code of what keeps it away; null where nothing does. */
  reason: v.nullable(text(64)),
  /** The same in words, with what mends it; absent or null where there are none. */
  detail: v.optional(v.nullable(looseText(1_000))),
});

const FrpPresence = v.strictObject({
  /** Of the frps: protocol, name and port. */
  server: text(1_024),
  /** Whether the whole way there and back was found, by the last look. */
  reached: v.boolean(),
  /** What keeps it, with what frpc said last; null where nothing does. */
  reason: v.nullable(looseText(1_000)),
});
export type FrpPresence = v.InferOutput<typeof FrpPresence>;

/** A running or recent worker, as worker status shows it. */
export const WorkerStatus = v.strictObject({
  cluster: Id,
  endpoint_id: Id,
  process: ProcessIdentity,
  version: text(128),
  registered_at: Timestamp,
  last_seen_at: Timestamp,
  capacity: Capacity,
  active_leases_by_kind: recordOf(JobKind, Count),
  active_leases_by_lane: recordOf(Lane, Count),
  queued_by_kind: recordOf(JobKind, Count),
  quarantined: Count,
  lane_last_error: v.nullable(looseText(2_000)),
  spool_dir: text(4_096),
  core_dir: text(4_096),
  /** Where desktops meet it, and whether it is there now; absent or null where it is met nowhere. */
  met_at: v.optional(v.nullable(MeetingPlace)),
  /** How it is at its frps; absent or null where it has none. */
  frp: v.optional(v.nullable(FrpPresence)),
});
export type WorkerStatus = v.InferOutput<typeof WorkerStatus>;
