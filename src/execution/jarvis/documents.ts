import * as v from "valibot";
import { Count, Finite, looseText, recordOf, text } from "../../domain/primitives.ts";

/*
 * JARVIS-CD's documents, as its commands print them with `+json`. Each says by `schema_version` what its members mean; members that are not named here are kept and
 * passed over.
 */

/** jarvis_cd/core/execution.py: execution and pipeline ids are portable file names of at most 128 characters. */
export const JARVIS_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const JarvisId = v.pipe(v.string(), v.regex(JARVIS_ID));
const Mode = v.picklist(["direct", "scheduler"]);
const Word = v.nullable(text(256));

const identity = {
  execution_id: JarvisId,
  pipeline_id: JarvisId,
  mode: Mode,
  scheduler_provider: Word,
  scheduler_native_id: Word,
  cluster: Word,
};

/** What a run or a submission prints last. */
export const Handle = v.looseObject({ schema_version: v.literal("jarvis.execution.handle.v1"), ...identity });
export type Handle = v.InferOutput<typeof Handle>;

/** RFC 3339 with microseconds. */
const Time = v.pipe(v.string(), v.maxLength(64), v.isoTimestamp());

export const ExecutionRecord = v.looseObject({
  schema_version: v.literal("jarvis.execution.record.v1"),
  ...identity,
  /** preparing, scripted, submitting, submitted, running, completed, failed, canceled, unknown. */
  state: text(64),
  submitted: v.boolean(),
  terminal: v.boolean(),
  created_at: Time,
  updated_at: Time,
  return_code: v.nullable(v.pipe(v.number(), v.safeInteger())),
  error: v.nullable(looseText(16_384)),
  metadata: recordOf(v.string(), v.unknown()),
});
export type ExecutionRecord = v.InferOutput<typeof ExecutionRecord>;

const ProgressReport = v.looseObject({
  schema_version: v.literal("jarvis.progress.v1"),
  sequence: Count,
  state: text(64),
  label: v.optional(v.nullable(text(256))),
  current: v.optional(v.nullable(Finite)),
  total: v.optional(v.nullable(Finite)),
  unit: v.optional(v.nullable(text(256))),
  message: v.optional(v.nullable(looseText(4_096))),
});

const PackageProgress = v.looseObject({
  package_id: text(256),
  package_name: text(256),
  event_count: Count,
  latest: v.nullable(ProgressReport),
});
export type PackageProgress = v.InferOutput<typeof PackageProgress>;

export const ExecutionProgress = v.looseObject({
  schema_version: v.literal("jarvis.execution.progress.v1"),
  execution_id: JarvisId,
  packages: v.pipe(v.array(PackageProgress), v.maxLength(1_024)),
});
export type ExecutionProgress = v.InferOutput<typeof ExecutionProgress>;

const ListedArtifact = v.looseObject({
  schema_version: v.literal("jarvis.artifact.v1"),
  logical_name: text(256),
  state: text(64),
  location: v.optional(v.nullable(v.looseObject({ kind: text(64), value: text(8_192) }))),
});

export const ExecutionArtifacts = v.looseObject({
  schema_version: v.literal("jarvis.execution.artifacts.v1"),
  execution_id: JarvisId,
  artifacts: v.pipe(v.array(ListedArtifact), v.maxLength(10_000)),
});
export type ExecutionArtifacts = v.InferOutput<typeof ExecutionArtifacts>;

const ServiceRuntime = v.looseObject({
  schema_version: v.literal("jarvis.service-runtime.v2"),
  service_instance_id: text(256),
  package_id: text(256),
  package_name: text(256),
  revision: Count,
  lifecycle: text(64),
  host: text(256),
  port: v.pipe(Count, v.maxValue(65_535)),
  protocol: text(64),
  authorization: v.optional(v.nullable(v.looseObject({ scheme: text(64), token_sha256: text(64) }))),
});
export type ServiceRuntime = v.InferOutput<typeof ServiceRuntime>;

export const ServiceRuntimes = v.looseObject({
  schema_version: v.literal("jarvis.execution.service-runtimes.v1"),
  execution_id: JarvisId,
  service_runtimes: v.pipe(v.array(ServiceRuntime), v.maxLength(1_024)),
});
export type ServiceRuntimes = v.InferOutput<typeof ServiceRuntimes>;

/** A document as it came, or why it is none that is understood. */
export type Read<T> = { readonly document: T; readonly text: string } | { readonly refused: string; readonly text: string };

/** Read one line of JSON as a document of that kind, of the execution that it has to be about. */
export function readDocument<T extends { readonly execution_id: string }>(
  schema: v.GenericSchema<unknown, T>,
  line: string,
  executionId: string,
): Read<T> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { refused: "it is not JSON", text: line };
  }
  const parsed = v.safeParse(schema, value);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    const where = v.getDotPath(issue) ?? "the document";
    const said =
      where === "schema_version"
        ? `schema_version is ${JSON.stringify(issue.input)?.slice(0, 100)}, which is not known`
        : `${where}: ${issue.message}`;
    return { refused: said.slice(0, 500), text: line };
  }
  const { execution_id } = parsed.output;
  if (execution_id !== executionId) return { refused: `it is about the execution ${execution_id.slice(0, 128)}`, text: line };
  return { document: parsed.output, text: line };
}
