import { toJsonSchema, toJsonSchemaDefs } from "@valibot/to-json-schema";
import type * as v from "valibot";
import { RemoteMcpServer } from "../config/remote-mcp-server.ts";
import { Artifact } from "../domain/artifact.ts";
import { Attempt, ProcessIdentity } from "../domain/attempt.ts";
import { Capacity, Endpoint, Slots } from "../domain/endpoint.ts";
import { ERRORS, type ErrorCode } from "../domain/errors.ts";
import { Event } from "../domain/event.ts";
import { ID_PATTERN } from "../domain/id.ts";
import { CancellationRequest, Job, JobReceipt, JobSubmission, Outcome } from "../domain/job.ts";
import { LIMITS } from "../domain/limits.ts";
import { ArtifactUse, UsedArtifactRef } from "../domain/lineage.ts";
import { LOG_STREAMS, LogChunk, StreamCapture } from "../domain/log.ts";
import { JsonValue, Metadata } from "../domain/primitives.ts";
import { NewProgress, Progress } from "../domain/progress.ts";
import { SchedulerJob, SchedulerRequest, SchedulerStatus } from "../domain/scheduler.ts";
import { NewTaskEvent, Task, TaskEvent } from "../domain/task.ts";
import { NewTransform, TransformRef } from "../domain/transform.ts";
import { JobStatus, JobSummary, JobWaitResult, WorkerStatus } from "../domain/views.ts";
import type { Answer, Operation } from "./operation.ts";

type JsonSchema = Record<string, unknown>;

interface Info {
  readonly title: string;
  readonly version: string;
}

/** Schemas that the document names; wherever one is used, it is a reference. */
const SHARED = { JsonValue, Metadata, Outcome, ProcessIdentity, Slots };
const OUTPUT = {
  ...SHARED,
  Artifact,
  ArtifactUse,
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
  RemoteMcpServer,
  SchedulerJob,
  SchedulerRequest,
  SchedulerStatus,
  Task,
  StreamCapture,
  TaskEvent,
  TransformRef,
  UsedArtifactRef,
  WorkerStatus,
};
const INPUT = { ...SHARED, NewTransform, JobSubmission, NewProgress, NewTaskEvent };

/** JsonValue, said without itself: generators make of a union that has itself as a member a type that their compiler refuses. */
const ANY_JSON: JsonSchema = { description: "any JSON value" };

const SETTINGS = {
  errorMode: "ignore",
  overrideRef: ({ referenceId }: { referenceId: string }) => `#/components/schemas/${referenceId}`,
} as const;

/** Reasons that any operation can answer with; what is wrong with a body is said also where none is taken. */
const COMMON: readonly ErrorCode[] = [
  "http_request_malformed",
  "request_timeout",
  "payload_too_large",
  "request_validation_failed",
  "internal_error",
];
/** What any operation of a worker meets where its queue's file, or the disk, fails it. */
const OF_QUEUE: readonly ErrorCode[] = ["queue_unavailable", "storage_admission_refused", "queue_corrupt", "queue_incomplete"];
const WITH_TOKEN: readonly ErrorCode[] = [
  "authentication_required",
  "host_refused",
  "origin_refused",
  "request_head_too_large",
  "listener_busy",
];
/** Either will do. */
const SECURITY = {
  token: { type: "http", scheme: "bearer", description: "what the listener's private file holds" },
  token_field: { type: "apiKey", in: "header", name: "X-Clio-Relay-Token", description: "the same, for who cannot set Authorization" },
};
/** What is said in a worker's place. */
const FORWARDED: readonly ErrorCode[] = [
  "cluster_not_found",
  "configuration_error",
  "worker_not_running",
  "worker_absent",
  "link_down",
  "cluster_busy",
  "authorization_required",
  "version_mismatch",
  "channel_refused",
  "answer_malformed",
];

export interface DocumentOptions {
  /** Whether requests need a bearer token. */
  readonly token?: boolean;
  /** Whether they are a worker's. */
  readonly worker?: boolean;
  /** Operations of a worker, below a path, for example /clusters/:name. */
  readonly forwarded?: { readonly below: string; readonly operations: readonly Operation[] };
}

/** The OpenAPI 3.1 document of a set of operations. */
export function openApiDocument(
  operations: readonly Operation[],
  info: Info,
  { token = false, worker = false, forwarded }: DocumentOptions = {},
): JsonSchema {
  const paths: Record<string, JsonSchema> = {};
  const add = (op: Operation, errors: readonly ErrorCode[] = []): void => {
    const path = op.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [op.method]: describe(op, [...(token && !op.open ? WITH_TOKEN : []), ...errors], token) };
  };
  for (const op of operations) add(op, worker ? OF_QUEUE : []);
  for (const op of forwarded?.operations ?? []) add({ ...op, path: forwarded!.below + op.path }, [...OF_QUEUE, ...FORWARDED]);
  const responses = responsesIn(paths);
  return {
    openapi: "3.1.0",
    info: { ...info, description: "Problems are application/problem+json (RFC 9457); `reason` is the code to decide on." },
    ...(token ? { security: Object.keys(SECURITY).map((scheme) => ({ [scheme]: [] })) } : {}),
    paths,
    components: {
      ...(token ? { securitySchemes: SECURITY } : {}),
      responses,
      schemas: referredTo([paths, responses], {
        Problem: PROBLEM,
        ...toJsonSchemaDefs(OUTPUT, { ...SETTINGS, typeMode: "output" }),
        ...toJsonSchemaDefs(INPUT, { ...SETTINGS, typeMode: "input" }),
        JsonValue: ANY_JSON,
      }),
    },
  };
}

/** Those of the named schemas that a part of the document leads to. */
function referredTo(parts: unknown, schemas: Readonly<Record<string, unknown>>): JsonSchema {
  const found = new Set<string>();
  const follow = (part: unknown): void => {
    for (const [, name = ""] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name)) continue;
      found.add(name);
      follow(schemas[name]);
    }
  };
  follow(parts);
  return Object.fromEntries(Object.entries(schemas).filter(([name]) => found.has(name)));
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

/** Parts of paths; all others are identifiers. */
const SEGMENTS: Readonly<Record<string, JsonSchema>> = {
  sha256: { type: "string", pattern: "^[0-9a-f]{64}$" },
  stream: { type: "string", enum: LOG_STREAMS },
  attempt: { type: "integer", minimum: 1 },
};
const IDENTIFIER: JsonSchema = { type: "string", pattern: ID_PATTERN.source };

const pathParameters = (path: string): JsonSchema[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: "path", required: true, schema: SEGMENTS[name!] ?? IDENTIFIER }));

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

/** Headers that are held to something; all others are read as far as they can be. */
const HEADERS: Readonly<Record<string, JsonSchema>> = {
  "Idempotency-Key": { type: "string", minLength: 1, maxLength: LIMITS.idempotencyKeyLength },
  // An empty one is none (HTML standard, section 9.2.6).
  "Last-Event-ID": { type: "string", pattern: "^\\d{0,16}$" },
};

/** By RFC 9110 the field Accept is no parameter to OpenAPI: what can be had is what an answer's content says. */
const headerParameters = (headers: Operation["headers"] = {}): JsonSchema[] =>
  Object.entries(headers)
    .filter(([name]) => name !== "Accept")
    .map(([name, description]) => ({ name, in: "header", required: false, description, schema: HEADERS[name] ?? { type: "string" } }));

const headersOf = (descriptions: Readonly<Record<string, string>>): JsonSchema => ({
  headers: Object.fromEntries(
    Object.entries(descriptions).map(([name, description]) => [name, { description, schema: { type: "string" } }]),
  ),
});

function successes(answer: Answer): JsonSchema {
  if (answer.kind === "json") {
    const content = { "application/json": { schema: schemaOf(answer.schema, "output") } };
    return Object.fromEntries((answer.status ?? [200]).map((status) => [status, { description: "as asked", ...located(status), content }]));
  }
  if (answer.kind === "events") {
    return { 200: { description: "server-sent events", content: { "text/event-stream": { schema: messageOf(answer.schema) } } } };
  }
  if (answer.kind === "text") return { 200: { description: "as asked", content: { [answer.type]: { schema: { type: "string" } } } } };
  if (answer.kind === "web-socket") {
    return { 101: { description: "a WebSocket; each text message is `{event, id, data}`, and `data` as in the event stream's" } };
  }
  return Object.fromEntries((answer.status ?? [200]).map((status) => [status, contentAnswer(status, answer.inline)]));
}

/** One message of an event stream; what its data is, when it is read as JSON, is of the schema. */
const messageOf = (schema: v.GenericSchema): JsonSchema => ({
  type: "object",
  required: ["event", "data"],
  properties: {
    id: { type: "string" },
    event: { type: "string" },
    data: { type: "string", contentMediaType: "application/json", contentSchema: schemaOf(schema, "output") },
  },
});

const located = (status: number): JsonSchema =>
  status === 201 ? headersOf({ Location: "where it is, where it has a place of its own" }) : {};

const TAG = { ETag: "strong entity tag, where the content does not change any more" };

function contentAnswer(status: number, inline: v.GenericSchema | undefined): JsonSchema {
  if (status === 304) return { description: "not modified", ...headersOf(TAG) };
  const bytes = { "application/octet-stream": { schema: BYTES } };
  const document = inline === undefined || status !== 200 ? {} : { "application/json": { schema: schemaOf(inline, "output") } };
  const range: Record<string, string> = status === 206 ? { "Content-Range": "which bytes, of how many" } : {};
  return { description: "bytes", ...headersOf({ ...TAG, ...range }), content: { ...bytes, ...document } };
}

/** The refusals of an operation by status, as references to the answers of `components`. */
function problems(op: Operation, more: readonly ErrorCode[]): JsonSchema {
  const codes = new Set([
    ...COMMON,
    ...(op.queryRefusal === undefined ? [] : [op.queryRefusal]),
    ...Object.values(op.parameterRefusals ?? {}),
    ...(op.errors ?? []),
    ...more,
  ]);
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].http);
  return Object.fromEntries([...byStatus].map(([status, reasons]) => [status, { $ref: `${RESPONSES}${reasons.toSorted().join(".")}` }]));
}

const RESPONSES = "#/components/responses/";

/** Every answer that is referred to: its name is made of the reasons that it can have. */
function responsesIn(paths: JsonSchema): JsonSchema {
  const names = new Set([...JSON.stringify(paths).matchAll(/"#\/components\/responses\/([^"]*)"/g)].map(([, name]) => name!));
  const content = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
  return Object.fromEntries([...names].toSorted().map((name) => [name, { description: name.replaceAll(".", ", "), content }]));
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
    truncated_members: { type: "array", items: { type: "string" }, description: "members that would not fit" },
    envelope_overflow: { const: true, description: "`detail` was cut" },
  },
};
