import * as v from "valibot";
import { LIMITS } from "./limits.ts";
import { ArtifactUses } from "./lineage.ts";
import { Count, Id, looseText, Metadata, Sequence, Sha256, Timestamp, text } from "./primitives.ts";
import { CommandSpec, InputIngestSpec, JarvisSpec, McpCallSpec, RemoteAgentSpec } from "./specs.ts";
import { TraceContext } from "./trace.ts";

export const JOB_KINDS = ["command", "jarvis", "remote_agent", "mcp_call", "input_ingest"] as const;
export const JobKind = v.picklist(JOB_KINDS);
export type JobKind = v.InferOutput<typeof JobKind>;

/** queued -> leased -> running -> succeeded | failed | canceled; see transitions.ts. */
export const JOB_STATES = ["queued", "leased", "running", "succeeded", "failed", "canceled"] as const;
export const JobState = v.picklist(JOB_STATES);
export type JobState = v.InferOutput<typeof JobState>;

/**
 * `control` has slots of its own, so that short queries never wait behind long work; `scheduler` has, because what runs in an allocation uses nothing of
 * the worker's host.
 */
export const LANES = ["workload", "control", "scheduler"] as const;
export const Lane = v.picklist(LANES);
export type Lane = v.InferOutput<typeof Lane>;

/** Why an attempt, and with its last attempt the job, ended. */
export const OUTCOME_REASONS = [
  "completed",
  "exit_nonzero",
  "signaled",
  "timeout",
  "canceled",
  "spawn_failed",
  "env_setup_failed",
  "output_missing",
  "outcome_unknown",
  "engine_failed",
] as const;
export const OutcomeReason = v.picklist(OUTCOME_REASONS);
export type OutcomeReason = v.InferOutput<typeof OutcomeReason>;

/** How an attempt ended. Written once. */
export const Outcome = v.strictObject({
  reason: OutcomeReason,
  /** Exit code of the job's first process, when it exited by itself. */
  exit_code: v.nullable(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255))),
  /** Signal name such as SIGKILL, when a signal ended it. */
  signal: v.nullable(text(32)),
  /** One sentence for people. */
  message: looseText(2_000),
  /** Process ids that outlived the job and could not be removed. */
  residual: v.pipe(v.array(Count), v.maxLength(1_000)),
});
export type Outcome = v.InferOutput<typeof Outcome>;

const SPECS = {
  command: CommandSpec,
  jarvis: JarvisSpec,
  remote_agent: RemoteAgentSpec,
  mcp_call: McpCallSpec,
  input_ingest: InputIngestSpec,
} as const;

export const IdempotencyKey = text(LIMITS.idempotencyKeyLength);

/** Whose a submission is: an owner session's, of one generation, or nobody's in particular. */
export const OWNER = {
  owner_session_id: v.optional(v.nullable(Id), null),
  owner_session_generation_id: v.optional(v.nullable(Id), null),
};
export type Owner = v.InferOutput<v.StrictObjectSchema<typeof OWNER, undefined>>;

/** Both or neither. */
export const wholeOwner = <T extends Owner>() =>
  v.check<T, string>(
    (s) => (s.owner_session_id === null) === (s.owner_session_generation_id === null),
    "owner_session_id and owner_session_generation_id come together",
  );

const submissionFields = {
  /** The cluster it is meant for; a worker of another cluster refuses it. */
  cluster: Id,
  /** Same key and same body: the same job. Same key and another body: a conflict. Absent: a fresh key. */
  idempotency_key: v.optional(IdempotencyKey),
  ...OWNER,
  used_artifact_refs: v.optional(ArtifactUses, []),
  metadata: v.optional(Metadata, {}),
};

/** What a client sends to submit a job. */
export const JobSubmission = v.pipe(
  v.variant("kind", [
    v.strictObject({ kind: v.literal("command"), spec: SPECS.command, ...submissionFields }),
    v.strictObject({ kind: v.literal("jarvis"), spec: SPECS.jarvis, ...submissionFields }),
    v.strictObject({ kind: v.literal("remote_agent"), spec: SPECS.remote_agent, ...submissionFields }),
    v.strictObject({ kind: v.literal("mcp_call"), spec: SPECS.mcp_call, ...submissionFields }),
    v.strictObject({ kind: v.literal("input_ingest"), spec: SPECS.input_ingest, ...submissionFields }),
  ]),
  wholeOwner(),
  v.check(({ kind, spec, used_artifact_refs }) => {
    if (kind === "mcp_call" || kind === "input_ingest" || spec.inputs === undefined) return true;
    const pinned = new Set(used_artifact_refs.map(({ artifact_id }) => artifact_id));
    return Object.values(spec.inputs).every((id) => pinned.has(id));
  }, "each artifact in spec.inputs has to be in used_artifact_refs, with its SHA-256"),
);
export type JobSubmission = v.InferOutput<typeof JobSubmission>;
/** The submission as a client may write it, with optional members left out. */
export type JobSubmissionInput = v.InferInput<typeof JobSubmission>;

/** The lane that a submission's job belongs to. */
export const laneOf = (submission: Pick<JobSubmission, "kind" | "spec">): Lane =>
  "scheduler" in submission.spec && submission.spec.scheduler !== undefined ? "scheduler" : "workload";

/** Recorded before anything is stopped; a job in this condition still runs until the worker acknowledges. */
export const CancellationRequest = v.strictObject({
  requested_at: Timestamp,
  previous_state: JobState,
  cancel_scheduler: v.boolean(),
  acknowledged_at: v.nullable(Timestamp),
});
export type CancellationRequest = v.InferOutput<typeof CancellationRequest>;

const jobFields = {
  /** `job_` and 32 hexadecimal digits. Set at submission. */
  job_id: Id,
  /** Order of submission in this queue, from 1. Set at submission. */
  sequence: Sequence,
  /** Set at submission. */
  cluster: Id,
  /** Set at submission, by the worker and never by the client. */
  lane: Lane,
  /** Changes by the table in transitions.ts. */
  state: JobState,
  /** Set at submission. */
  idempotency_key: IdempotencyKey,
  /** Set at submission, both or neither. */
  owner_session_id: v.nullable(Id),
  owner_session_generation_id: v.nullable(Id),
  /** Set at submission; sorted by artifact_id. */
  used_artifact_refs: ArtifactUses,
  /** SHA-256 of the canonical submission. Set at submission. */
  submission_digest: Sha256,
  /** Set at submission. */
  created_at: Timestamp,
  /** Changes with every transition. */
  updated_at: Timestamp,
  /** The endpoint that works on it; set when leased, cleared when it ends or is queued again. */
  leased_by: v.nullable(Id),
  /** How many attempts were claimed, voided ones included; it numbers the current one. */
  attempts: Count,
  /** One sentence on the last failure; null while nothing failed. */
  last_error: v.nullable(looseText(2_000)),
  /** How the job ended; null until it did. */
  outcome: v.nullable(Outcome),
  /** Set when somebody asks to cancel. */
  cancellation_request: v.nullable(CancellationRequest),
  /** Earliest time of the next attempt after a failed one; null when it may start at once. */
  not_before: v.nullable(Timestamp),
  /** Why the record is kept out of the lanes, when it cannot be read; null otherwise. */
  quarantine: v.nullable(looseText(2_000)),
  /** Set at submission. */
  metadata: Metadata,
  /** The trace that it belongs to. Set at submission, and no part of what a key stands for: who tries again does so in another span. */
  trace: v.nullable(TraceContext),
};

/** The job record, one variant a kind, with the members that an answer adds to it. */
export const jobWith = <E extends v.ObjectEntries>(extra: E) =>
  v.variant("kind", [
    v.strictObject({ kind: v.literal("command"), spec: SPECS.command, ...jobFields, ...extra }),
    v.strictObject({ kind: v.literal("jarvis"), spec: SPECS.jarvis, ...jobFields, ...extra }),
    v.strictObject({ kind: v.literal("remote_agent"), spec: SPECS.remote_agent, ...jobFields, ...extra }),
    v.strictObject({ kind: v.literal("mcp_call"), spec: SPECS.mcp_call, ...jobFields, ...extra }),
    v.strictObject({ kind: v.literal("input_ingest"), spec: SPECS.input_ingest, ...jobFields, ...extra }),
  ]);

/** A unit of work in the queue. */
export const Job = jobWith({});
export type Job = v.InferOutput<typeof Job>;

/** The answer to a submission: the job, and whether its key had already brought it about. */
export const JobReceipt = jobWith({ existing: v.boolean() });
export type JobReceipt = v.InferOutput<typeof JobReceipt>;
