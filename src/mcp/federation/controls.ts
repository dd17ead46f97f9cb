import * as v from "valibot";
import { IdempotencyKey } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { Id } from "../../domain/primitives.ts";
import { LOG_BYTES } from "../views.ts";

/** How long a call waits for its result unless it says otherwise, in seconds: less than clients wait for an answer. */
const WAIT_SECONDS = 30;
const LOG_LIMIT = 8_192;
/** Accepted from callers that polled once; waiting is by notification. */
const POLL_MAX = 3_600;

/** Arguments that each tool of a server on a cluster has besides its own, as JSON Schema of any dialect: as short as those of the relay's own tools (compact-schema.ts). */
export const CONTROLS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  idempotency_key: {
    type: "string",
    maxLength: LIMITS.idempotencyKeyLength,
    description: "same key and same arguments: the same job, and no second call",
  },
  wait_for_terminal: { type: "boolean", default: true, description: "false: answer when the job is in the queue" },
  wait_timeout_seconds: {
    type: "number",
    maximum: LIMITS.waitMaxSeconds,
    default: WAIT_SECONDS,
    description: "how long to wait for the result; after that the call goes on, and relay_wait has it",
  },
  poll_seconds: { type: "number", description: "of no effect" },
  include_logs: { type: "boolean", default: false, description: "with what the server wrote besides" },
  log_limit: { type: "integer", maximum: LOG_BYTES, default: LOG_LIMIT, description: "bytes of that at most, of each stream" },
};

/** Say of one of them what the other form says. */
const told = <S extends v.GenericSchema>(name: string, schema: S) => v.pipe(schema, v.description(String(CONTROLS[name]?.["description"])));

/** The same, and the cluster, as they are read. */
export const OwnArguments = v.strictObject({
  cluster: Id,
  idempotency_key: v.optional(told("idempotency_key", IdempotencyKey)),
  wait_for_terminal: v.optional(told("wait_for_terminal", v.boolean()), true),
  wait_timeout_seconds: v.optional(
    told("wait_timeout_seconds", v.pipe(v.number(), v.minValue(0), v.maxValue(LIMITS.waitMaxSeconds))),
    WAIT_SECONDS,
  ),
  poll_seconds: v.optional(told("poll_seconds", v.pipe(v.number(), v.minValue(0), v.maxValue(POLL_MAX)))),
  include_logs: v.optional(told("include_logs", v.boolean()), false),
  log_limit: v.optional(told("log_limit", v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(LOG_BYTES))), LOG_LIMIT),
});
export type OwnArguments = v.InferOutput<typeof OwnArguments>;
