import * as v from "valibot";
import { IdempotencyKey } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { Id } from "../../domain/primitives.ts";
import { LOG_BYTES } from "../views.ts";

/** How long a call waits for its result unless it says otherwise, in seconds: less than clients wait for an answer. */
const WAIT_SECONDS = 30;
const LOG_LIMIT = 8_192;

/** Arguments that each tool of a server on a cluster has besides its own, as JSON Schema of any dialect. */
export const CONTROLS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  idempotency_key: {
    type: "string",
    minLength: 1,
    maxLength: LIMITS.idempotencyKeyLength,
    description: "same key and same arguments: the same job, and no second call",
  },
  wait_for_terminal: { type: "boolean", default: true, description: "false: answer when the job is in the queue" },
  wait_timeout_seconds: {
    type: "number",
    minimum: 0,
    maximum: LIMITS.waitMaxSeconds,
    default: WAIT_SECONDS,
    description: "how long to wait for the result; the call goes on after that, and relay_wait has it",
  },
  include_logs: { type: "boolean", default: false, description: "with what the server wrote besides" },
  log_limit: { type: "integer", minimum: 1, maximum: LOG_BYTES, default: LOG_LIMIT },
};

/** The same, and the cluster, as they are read. */
export const OwnArguments = v.strictObject({
  cluster: Id,
  idempotency_key: v.optional(IdempotencyKey),
  wait_for_terminal: v.optional(v.boolean(), true),
  wait_timeout_seconds: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(LIMITS.waitMaxSeconds)), WAIT_SECONDS),
  include_logs: v.optional(v.boolean(), false),
  log_limit: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(LOG_BYTES)), LOG_LIMIT),
});
export type OwnArguments = v.InferOutput<typeof OwnArguments>;
