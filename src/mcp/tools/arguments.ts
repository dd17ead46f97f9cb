import * as v from "valibot";
import { LIMITS } from "../../domain/limits.ts";
import { Id, Sequence, Sha256, text } from "../../domain/primitives.ts";
import { LOG_BYTES } from "../views.ts";

/** Describe an argument to an agent. */
export const said = <S extends v.GenericSchema>(schema: S, description: string) => v.pipe(schema, v.description(description));

const whole = (least: number, most: number) => v.pipe(v.number(), v.safeInteger(), v.minValue(least), v.maxValue(most));

export const CLUSTER = { cluster: said(Id, "the cluster, as relay_list_clusters names it") };

/** Where a record is. Without any of it the clusters are asked. */
export const WHERE = {
  cluster: v.optional(said(Id, "where it is; without it all clusters are asked")),
  route_revision: v.optional(said(Sha256, "of an earlier answer; refused when the cluster's route has changed since")),
};

export const JOB = { job_id: said(Id, "id of the job"), ...WHERE };

/** Entries of a page for an agent, unless it asks for more. */
const PAGE = 50;
export const PAGED = {
  cursor: v.optional(said(Sequence, "where to begin: next_cursor of the page before"), 1),
  limit: v.optional(said(whole(1, LIMITS.pageMax), "entries at most"), PAGE),
};

export const LIMIT = PAGED.limit;

export const logLimit = (fallback: number) => v.optional(said(whole(1, LOG_BYTES), "bytes of text at most"), fallback);

export const offset = v.optional(said(whole(0, Number.MAX_SAFE_INTEGER), "first byte"));

/** How long an agent waits at most, in seconds. */
const WAIT_MAX = LIMITS.waitMaxSeconds;

export const waitSeconds = (fallback: number) =>
  v.optional(
    said(
      v.pipe(v.number(), v.minValue(0), v.maxValue(WAIT_MAX)),
      "how long to wait at most; when it is over the job goes on. Less than your client waits for a call, often 60 s",
    ),
    fallback,
  );

/** Accepted from callers that polled once; waiting is by notification. */
export const POLL = { poll_seconds: v.optional(said(v.pipe(v.number(), v.minValue(0), v.maxValue(3_600)), "of no effect")) };

export const SUBMISSION = {
  idempotency_key: v.optional(
    said(
      text(LIMITS.idempotencyKeyLength),
      "same key and same arguments: the same job. Left out: a new one each time, and the answer has it",
    ),
  ),
  used_artifact_refs: v.optional(
    said(
      v.pipe(v.array(v.strictObject({ artifact_id: Id, sha256: Sha256 })), v.maxLength(LIMITS.artifactUses)),
      "artifacts of other jobs that it consumes, each with its SHA-256",
    ),
    [],
  ),
};

/** Waiting, of tools that submit. */
export const THEN_WAIT = {
  wait_for_terminal: v.optional(said(v.boolean(), "answer when the job has ended, and not already when it is in the queue"), false),
  wait_timeout_seconds: waitSeconds(LIMITS.waitDefaultSeconds),
  ...POLL,
};
