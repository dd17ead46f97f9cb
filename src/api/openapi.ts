import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import type * as v from "valibot";
import { Artifact } from "../domain/artifact.ts";
import { Attempt, ProcessIdentity } from "../domain/attempt.ts";
import { Capacity, Endpoint } from "../domain/endpoint.ts";
import { ERRORS, type ErrorCode } from "../domain/errors.ts";
import { Event } from "../domain/event.ts";
import { CancellationRequest, Job, JobReceipt, JobSubmission, Outcome } from "../domain/job.ts";
import { LogChunk, StreamCapture } from "../domain/log.ts";
import { JsonValue, Metadata } from "../domain/primitives.ts";
import { NewProgress, Progress } from "../domain/progress.ts";
import { NewTaskEvent, Task, TaskEvent } from "../domain/task.ts";
import { JobStatus, JobSummary, JobWaitResult, WorkerStatus } from "../domain/views.ts";
import type { Answer, Operation } from "./operation.ts";

type JsonSchema = Record<string, unknown>;

interface Info {
  readonly title: string;
  readonly version: string;
}

/** Schemas that the document names; wherever one is used, it is a reference. */
const SHARED = { JsonValue, Metadata, Outcome, ProcessIdentity };
const OUTPUT = {
  ...SHARED,
  Artifact,
  Attempt,
  CancellationRequest,
  Capacity,
  Endpoint,
  Event,
  Job,
  JobReceipt,
  JobStatus,
  JobSummary,
  JobWaitResult,
  LogChunk,
  Progress,
  Task,
  StreamCapture,
  TaskEvent,
  WorkerStatus,
};
const INPUT = { ...SHARED, JobSubmission, NewProgress, NewTaskEvent };

const SETTINGS = {
  errorMode: "ignore",
  overrideRef: ({ referenceId }: { referenceId: string }) => `#/components/schemas/${referenceId}`,
} as const;

/** Reasons that any operation can answer with. */
const COMMON: readonly ErrorCode[] = ["request_validation_failed", "internal_error"];
const WITH_BODY: readonly ErrorCode[] = ["http_request_malformed", "payload_too_large"];
const WITH_TOKEN: readonly ErrorCode[] = ["authentication_required", "host_refused"];
const FORWARDED: readonly ErrorCode[] = ["cluster_not_found", "worker_not_running", "link_down"];

export interface DocumentOptions {
  /** Whether requests need a bearer token. */
  readonly token?: boolean;
  /** Operations of a worker, below a path, for example /clusters/:name. */
  readonly forwarded?: { readonly below: string; readonly operations: readonly Operation[] };
}

/** The OpenAPI 3.1 document of a set of operations. */
export function openApiDocument(
  operations: readonly Operation[],
  info: Info,
  { token = false, forwarded }: DocumentOptions = {},
): JsonSchema {
  const paths: Record<string, JsonSchema> = {};
  const add = (op: Operation, errors: readonly ErrorCode[] = []): void => {
    const path = op.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [op.method]: describe(op, [...(token && !op.open ? WITH_TOKEN : []), ...errors], token) };
  };
  for (const op of operations) add(op);
  for (const op of forwarded?.operations ?? []) add({ ...op, path: forwarded!.below + op.path }, FORWARDED);
  return {
    openapi: "3.1.0",
    info: { ...info, description: "Problems are application/problem+json (RFC 9457); `reason` is the code to decide on." },
    ...(token ? { security: [{ token: [] }] } : {}),
    paths,
    components: {
      ...(token ? { securitySchemes: { token: { type: "http", scheme: "bearer", description: "from the daemon's private record" } } } : {}),
      schemas: {
        Problem: PROBLEM,
        ...toJsonSchemaDefs(OUTPUT, { ...SETTINGS, typeMode: "output" }),
        ...toJsonSchemaDefs(INPUT, { ...SETTINGS, typeMode: "input" }),
      },
    },
  };
}

function describe(op: Operation, errors: readonly ErrorCode[], token: boolean): JsonSchema {
  return {
    operationId: op.id,
    summary: op.summary,
    parameters: [...pathParameters(op.path), ...queryParameters(op.query), ...headerParameters(op.headers)],
    ...requestBody(op),
    ...(token && op.open ? { security: [] } : {}),
    responses: { ...successes(op.answer), ...problems(op, errors) },
  };
}

const BYTES: JsonSchema = { type: "string", contentMediaType: "application/octet-stream" };

function requestBody({ body, bodyOptional, reads }: Operation): JsonSchema {
  if (reads === "bytes") return { requestBody: { required: true, content: { "application/octet-stream": { schema: BYTES } } } };
  if (body === undefined) return {};
  return { requestBody: { required: !bodyOptional, content: { "application/json": { schema: schemaOf(body, "input") } } } };
}

const pathParameters = (path: string): JsonSchema[] =>
  [...path.matchAll(/:(\w+)/g)].map((match) => ({ name: match[1], in: "path", required: true, schema: { type: "string" } }));

function queryParameters(query: v.GenericSchema | undefined): JsonSchema[] {
  if (query === undefined) return [];
  // What a parameter means is what its text is read to; whether it may be left out is a matter of the text.
  const { properties = {} } = schemaOf(query, "output") as { properties?: Record<string, JsonSchema> };
  const { required = [] } = schemaOf(query, "input") as { required?: string[] };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema: typeof schema["default"] === "string" ? { ...schema, default: defaultOf(schema, schema["default"]) } : schema,
  }));
}

const defaultOf = ({ type }: JsonSchema, text: string): unknown => (type === "string" ? text : JSON.parse(text));

const headerParameters = (headers: Operation["headers"] = {}): JsonSchema[] =>
  Object.entries(headers).map(([name, description]) => ({ name, in: "header", required: false, description, schema: { type: "string" } }));

function successes(answer: Answer): JsonSchema {
  if (answer.kind === "json") {
    const content = { "application/json": { schema: schemaOf(answer.schema, "output") } };
    return Object.fromEntries((answer.status ?? [200]).map((status) => [status, { description: "as asked", content }]));
  }
  if (answer.kind === "events") {
    return {
      200: {
        description: "server-sent events; `data` is of this schema",
        content: { "text/event-stream": { schema: schemaOf(answer.schema, "output") } },
      },
    };
  }
  const content = { "application/octet-stream": { schema: { type: "string", contentMediaType: "application/octet-stream" } } };
  return Object.fromEntries(
    (answer.status ?? [200]).map((status) => [
      status,
      status === 304 ? { description: "not modified" } : { description: "bytes", content },
    ]),
  );
}

function problems(op: Operation, more: readonly ErrorCode[]): JsonSchema {
  const codes = new Set([
    ...COMMON,
    ...(op.queryRefusal === undefined ? [] : [op.queryRefusal]),
    ...(op.body === undefined ? [] : WITH_BODY),
    ...(op.errors ?? []),
    ...more,
  ]);
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].http);
  return Object.fromEntries(
    [...byStatus].map(([status, reasons]) => [
      status,
      {
        description: reasons.join(", "),
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    ]),
  );
}

/** JSON Schema of a valibot schema. Checks that JSON Schema cannot say (relations between members) are left out. */
function schemaOf(schema: v.GenericSchema, typeMode: "input" | "output"): JsonSchema {
  const definitions = typeMode === "input" ? INPUT : OUTPUT;
  const name = Object.entries(definitions).find(([, known]) => known === schema)?.[0];
  if (name !== undefined) return { $ref: SETTINGS.overrideRef({ referenceId: name }) };
  const { $schema: _dialect, $defs: _named, ...rest } = toJsonSchema(schema, { ...SETTINGS, typeMode, definitions }) as JsonSchema;
  return rest;
}

const PROBLEM: JsonSchema = {
  type: "object",
  required: ["type", "title", "status", "detail", "schema_version", "reason", "retryable"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    schema_version: { const: "clio-relay.error.v1" },
    reason: { type: "string", enum: Object.keys(ERRORS) },
    retryable: { type: "boolean" },
    hint: { type: "string" },
  },
};
