import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Idempotency } from "../../domain/idempotency.ts";
import type { Job, JobSubmission, Lane } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { PARENT } from "../../domain/parent.ts";
import { titleOf } from "../../domain/title.ts";
import type { TraceContext } from "../../domain/trace.ts";
import { canonicalJson, sha256Hex } from "../../lib/digest.ts";
import { newId } from "../../lib/ids.ts";
import type { Reading, Writing } from "./access.ts";
import { insertEvent } from "./event-rows.ts";
import { checkInputs } from "./input-kind.ts";
import { jobRow, toJob } from "./job-rows.ts";
import { insertEdges, type ResolvedUse, resolveUses } from "./lineage.ts";

/** A submission with all that can be computed before its transaction. */
export interface PreparedSubmission {
  readonly submission: JobSubmission;
  readonly lane: Lane;
  readonly key: string;
  readonly digest: string;
  readonly title: string;
  readonly spec: string;
  readonly metadata: string;
  readonly refs: string;
  readonly trace: TraceContext | null;
}

/**
 * SHA-256 over the canonical JSON of what was asked for: the submission without its key, with the used artifacts in the order of their ids.
 */
export function submissionDigest(submission: Omit<JobSubmission, "idempotency_key">): string {
  return sha256Hex(
    canonicalJson({
      kind: submission.kind,
      cluster: submission.cluster,
      spec: submission.spec,
      owner_session_id: submission.owner_session_id,
      owner_session_generation_id: submission.owner_session_generation_id,
      used_artifact_refs: sortedRefs(submission),
      metadata: withoutParent(submission.metadata),
    }),
  );
}

/** From which job it was asked for makes it no other work. */
function withoutParent({ [PARENT]: _parent, ...metadata }: JobSubmission["metadata"]): JobSubmission["metadata"] {
  return metadata;
}

const sortedRefs = ({ used_artifact_refs }: Pick<JobSubmission, "used_artifact_refs">): JobSubmission["used_artifact_refs"] =>
  used_artifact_refs.length < 2 ? used_artifact_refs : used_artifact_refs.toSorted((a, b) => (a.artifact_id < b.artifact_id ? -1 : 1));

/** @throws payload_too_large for a spec that is larger than one may be, job_submission_refused when the record would be larger than a job record may be */
export function prepareSubmission(submission: JobSubmission, lane: Lane, trace: TraceContext | null = null): PreparedSubmission {
  const spec = JSON.stringify(submission.spec);
  const metadata = JSON.stringify(submission.metadata);
  const refs = JSON.stringify(sortedRefs(submission));
  checkSize(spec, metadata, refs);
  return {
    submission,
    lane,
    key: submission.idempotency_key?.toWellFormed() ?? newId("key"),
    digest: submissionDigest(submission),
    title: titleOf(submission),
    spec,
    metadata,
    refs,
    trace,
  };
}

function checkSize(spec: string, metadata: string, refs: string): void {
  const specBytes = bytesOver(LIMITS.specBytes, spec);
  if (specBytes !== null) {
    throw new RelayError("payload_too_large", `the spec takes ${specBytes} bytes, more than ${LIMITS.specBytes}`, {
      max_bytes: LIMITS.specBytes,
    });
  }
  const bytes = bytesOver(LIMITS.jobRecordBytes, spec, metadata, refs);
  if (bytes === null) return;
  throw new RelayError("job_submission_refused", `the job's record takes ${bytes} bytes; ${LIMITS.jobRecordBytes} are allowed`, {
    bytes,
    limit_bytes: LIMITS.jobRecordBytes,
  });
}

/** How many bytes texts take in UTF-8 where that is more than a limit, else null; counted only where it may be. */
function bytesOver(limit: number, ...texts: readonly string[]): number | null {
  if (texts.reduce((sum, { length }) => sum + length, 0) * 3 <= limit) return null;
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  return bytes > limit ? bytes : null;
}

const NO_USES: readonly ResolvedUse[] = [];

/** Admit the job, or find the one that the key has brought about before. */
export function submit(
  w: Writing,
  prepared: PreparedSubmission,
  activeJobsMax: number,
  consumersMax?: number,
): { readonly job: Job; readonly existing: boolean } {
  const { submission, key } = prepared;
  // A fresh key cannot be known.
  const known = submission.idempotency_key === undefined ? null : knownKey(w, prepared);
  if (known !== null) return { job: known, existing: true };
  if (w.counts.active >= activeJobsMax) {
    throw new RelayError("active_job_capacity_reached", `the queue holds ${w.counts.active} active jobs, as many as it may`, {
      active: w.counts.active,
      active_jobs_max: activeJobsMax,
    });
  }
  const { used_artifact_refs: refs } = submission;
  const uses = refs.length === 0 ? NO_USES : resolveUses(w, submission, sortedRefs(submission), consumersMax);
  checkInputs(submission, uses);
  const jobId = newId("job");
  const sequence = insertJob(w, prepared, jobId);
  insertEdges(w, sequence, uses);
  w.sql.run(
    "INSERT INTO idempotency (owner_session_id, idempotency_key, job_id, job_digest, state) VALUES (?, ?, ?, ?, 'committed')",
    submission.owner_session_id ?? "",
    key,
    jobId,
    prepared.digest,
  );
  const taskId = newId("task");
  const name = submission.kind;
  w.sql.run(
    "INSERT INTO tasks (job, sequence, task_id, name, state, created_at, updated_at) VALUES (?, 1, ?, ?, 'queued', ?, ?)",
    sequence,
    taskId,
    name,
    w.now,
    w.now,
  );
  insertEvent(w, sequence, 1, {
    event_type: "job.queued",
    message: "The job waits in the queue.",
    payload: { lane: prepared.lane, kind: submission.kind },
  });
  insertEvent(w, sequence, 2, {
    event_type: "task.queued",
    message: `Task ${name} waits for the job to start.`,
    payload: { task_id: taskId, name },
  });
  w.counts.added(submission.kind);
  w.touch(`ready:${prepared.lane}`);
  w.touch(`job:${jobId}`);
  return { job: newJob(w, prepared, jobId, sequence), existing: false };
}

function insertJob(w: Writing, prepared: PreparedSubmission, jobId: string): number {
  const { submission } = prepared;
  return w.sql.run(
    `INSERT INTO jobs (job_id, cluster, kind, lane, state, next_seq, created_at, updated_at, title, idempotency_key, owner_session_id,
       owner_session_generation_id, submission_digest, used_artifact_refs, metadata, spec, trace)
     VALUES (?, ?, ?, ?, 'queued', 3, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    jobId,
    submission.cluster,
    submission.kind,
    prepared.lane,
    w.now,
    w.now,
    prepared.title,
    prepared.key,
    submission.owner_session_id,
    submission.owner_session_generation_id,
    prepared.digest,
    prepared.refs,
    prepared.metadata,
    prepared.spec,
    prepared.trace === null ? null : JSON.stringify(prepared.trace),
  ).lastInsertRowid;
}

/** The record of the row that was just inserted. */
const newJob = (w: Writing, { submission, lane, key, digest, trace }: PreparedSubmission, jobId: string, sequence: number): Job =>
  ({
    job_id: jobId,
    sequence,
    cluster: submission.cluster,
    kind: submission.kind,
    lane,
    state: "queued",
    spec: submission.spec,
    idempotency_key: key,
    owner_session_id: submission.owner_session_id,
    owner_session_generation_id: submission.owner_session_generation_id,
    used_artifact_refs: sortedRefs(submission),
    submission_digest: digest,
    created_at: w.now,
    updated_at: w.now,
    leased_by: null,
    attempts: 0,
    last_error: null,
    outcome: null,
    cancellation_request: null,
    not_before: null,
    quarantine: null,
    metadata: submission.metadata,
    trace,
  }) as Job;

/** The job that the submission's key has brought about before; null when it has none, or one that is new. */
export const submitted = (r: Reading, submission: JobSubmission): Job | null =>
  submission.idempotency_key === undefined ? null : knownKey(r, prepareSubmission(submission, "workload"));

/** The job of a known key with the same digest; null when the key is new. */
function knownKey(r: Reading, { submission, key, digest }: Pick<PreparedSubmission, "submission" | "key" | "digest">): Job | null {
  const row = r.sql.get(
    "SELECT idempotency_key, job_id, job_digest, state FROM idempotency WHERE owner_session_id = ? AND idempotency_key = ?",
    submission.owner_session_id ?? "",
    key,
  );
  if (row === null) return null;
  const read = v.safeParse(Idempotency, row);
  if (!read.success) throw new RelayError("queue_corrupt", `the record of the idempotency key cannot be read: ${read.issues[0].message}`);
  const known = read.output;
  const { job_id, job_digest } = known;
  if (job_digest !== digest) {
    throw new RelayError("job_submission_conflict", `the idempotency key belongs to another submission, which became ${job_id}`, {
      job_id,
      existing_digest: job_digest,
      submitted_digest: digest,
    });
  }
  if (known.state === "retired") {
    throw new RelayError("job_submission_conflict", `the idempotency key belongs to ${job_id}, which has been removed`, {
      job_id,
      existing_digest: job_digest,
      submitted_digest: digest,
      retired: true,
    });
  }
  return toJob(jobRow(r, job_id));
}
