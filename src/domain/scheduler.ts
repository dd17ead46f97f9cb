import * as v from "valibot";
import { SCHEDULER_ID_PATTERN } from "./id.ts";
import { ByteCount, Count, Finite, Id, looseText, OsString, Sequence, Timestamp, text } from "./primitives.ts";

/** Schedulers that there is a provider for. */
export const SCHEDULERS = ["slurm", "gridengine"] as const;
export const SchedulerName = v.picklist(SCHEDULERS);
export type SchedulerName = v.InferOutput<typeof SchedulerName>;

/** Which scheduler a cluster has, as it is configured: none that jobs may ask for, whichever is found there, or this one. */
export const SCHEDULER_CHOICES = [...SCHEDULERS, "external", "auto"] as const;
export const SchedulerChoice = v.picklist(SCHEDULER_CHOICES);
export type SchedulerChoice = v.InferOutput<typeof SchedulerChoice>;

/** See SCHEDULER_ID_PATTERN. */
export const SchedulerJobId = v.pipe(v.string(), v.regex(SCHEDULER_ID_PATTERN, "must be the id of a scheduler's job"));

/** One argument's worth of a site's own name: no line break, and nothing that would be read as an option. */
const Word = v.pipe(OsString(256), v.minLength(1), v.regex(/^[^\s-]\S*$/, "must be one word, and no option"));
const Positive = v.pipe(Count, v.minValue(1), v.maxValue(1_000_000));

/** What a scheduler job's name may begin with, before its mark. */
export const SCHEDULER_JOB_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** What a command job asks of a scheduler (docs/schedulers.md, The request). Immutable. */
export const SchedulerRequest = v.strictObject({
  /** Null is the one that the cluster is configured with. */
  provider: v.optional(v.nullable(SchedulerName), null),
  /** Goes before the marker in the scheduler job's name. */
  name: v.optional(v.nullable(v.pipe(v.string(), v.regex(SCHEDULER_JOB_NAME, "must be a word of letters and digits"))), null),
  nodes: v.optional(v.nullable(Positive), null),
  tasks: v.optional(v.nullable(Positive), null),
  cpus_per_task: v.optional(v.nullable(Positive), null),
  /** For the whole job. */
  gpus: v.optional(v.nullable(Positive), null),
  /** Per node. */
  memory_bytes: v.optional(v.nullable(v.pipe(ByteCount, v.minValue(1))), null),
  /** Wall clock; the scheduler's limit, in whole seconds. */
  time_limit_seconds: v.optional(v.nullable(v.pipe(Finite, v.integer(), v.minValue(1), v.maxValue(366 * 86_400))), null),
  /** Grid Engine: the queue. */
  partition: v.optional(v.nullable(Word), null),
  /** Grid Engine: the project. */
  account: v.optional(v.nullable(Word), null),
  qos: v.optional(v.nullable(Word), null),
  constraint: v.optional(v.nullable(Word), null),
  reservation: v.optional(v.nullable(Word), null),
  /** Grid Engine only; takes `tasks` slots. */
  parallel_environment: v.optional(v.nullable(Word), null),
  /** No other job on its nodes. */
  exclusive: v.optional(v.boolean(), false),
  /** Further options in the scheduler's own words, each one argument of the submit command. */
  options: v.optional(v.pipe(v.array(v.pipe(OsString(4_096), v.startsWith("-", "must be an option"))), v.maxLength(100)), []),
  /** The script has directives (#SBATCH, #$) that are meant. */
  directives: v.optional(v.boolean(), false),
});
export type SchedulerRequest = v.InferOutput<typeof SchedulerRequest>;

export const SCHEDULER_PHASES = ["submitted", "pending", "allocated", "running", "completed", "failed", "canceled", "unknown"] as const;
export const SchedulerPhase = v.picklist(SCHEDULER_PHASES);
export type SchedulerPhase = v.InferOutput<typeof SchedulerPhase>;

const ENDED: ReadonlySet<SchedulerPhase> = new Set<SchedulerPhase>(["completed", "failed", "canceled"]);

/** Whether a scheduler that says this will say nothing else of the job, unless it starts it again. */
export const hasEnded = (phase: SchedulerPhase): boolean => ENDED.has(phase);

const Words = v.nullable(looseText(1_024));

/** What a scheduler says of one of its jobs, at one moment. */
export const SchedulerStatus = v.strictObject({
  scheduler: SchedulerName,
  scheduler_job_id: text(128),
  /** The federation's or controller's name for itself, where there are several. */
  cluster: Words,
  phase: SchedulerPhase,
  /** False when every source has answered and none knows it; null when not all have. */
  record_found: v.nullable(v.boolean()),
  /** Whether it is among the active ones; null when that source did not answer. */
  active_record_found: v.nullable(v.boolean()),
  /** The scheduler's own word for the state, as it came. */
  raw_state: Words,
  /** Why it waits, or ended. */
  reason: Words,
  name: Words,
  partition: Words,
  qos: Words,
  account: Words,
  user: Words,
  nodes: Words,
  cpus: v.nullable(Count),
  memory: Words,
  /** Exit code of the batch script, where the scheduler knows it. */
  exit_code: v.nullable(Count),
  signal: v.nullable(Count),
  submit_time: v.nullable(Timestamp),
  eligible_time: v.nullable(Timestamp),
  start_time: v.nullable(Timestamp),
  end_time: v.nullable(Timestamp),
  elapsed_seconds: v.nullable(Count),
  time_limit_seconds: v.nullable(Count),
  /** From 1, among the pending of the same partition and QOS; approximate. Null when it does not wait, or cannot be counted. */
  queue_position: v.nullable(Sequence),
  jobs_ahead: v.nullable(Count),
  queue_position_scope: Words,
  queue_position_note: Words,
  observed_at: Timestamp,
});
export type SchedulerStatus = v.InferOutput<typeof SchedulerStatus>;

/** intended -> submitted | unresolved | refused; unresolved -> submitted | refused. */
export const SUBMISSION_STATES = ["intended", "submitted", "unresolved", "refused"] as const;
export const SubmissionState = v.picklist(SUBMISSION_STATES);
export type SubmissionState = v.InferOutput<typeof SubmissionState>;

/** An attempt's job of a scheduler. */
export const SchedulerJob = v.strictObject({
  job_id: Id,
  attempt: Sequence,
  /** The task that stands for it. */
  task_id: Id,
  provider: SchedulerName,
  /** Its name there, which no other job has. */
  marker: text(256),
  /** Changes as SUBMISSION_STATES says. */
  submission: SubmissionState,
  /** Set when it is submitted. */
  native_id: v.nullable(text(128)),
  scheduler_cluster: Words,
  /** The last observation; null before the first. */
  status: v.nullable(SchedulerStatus),
  intended_at: Timestamp,
  submitted_at: v.nullable(Timestamp),
  observed_at: v.nullable(Timestamp),
  /** When the scheduler said that it had ended. */
  ended_at: v.nullable(Timestamp),
  /** Whether it was left to go on when the relay's job ended. */
  retained: v.boolean(),
});
export type SchedulerJob = v.InferOutput<typeof SchedulerJob>;

/** The scheduler job's name: unique in the world, so that a job which has it is ours. */
export const markerOf = (jobId: string, attempt: number, name: string | null): string =>
  `${name === null ? "" : `${name}.`}clio-${jobId.replace(/^job_/, "")}-${attempt}`;
