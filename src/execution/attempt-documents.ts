import fs from "node:fs";
import path from "node:path";
import type { ArtifactKind, NewArtifact } from "../domain/artifact.ts";
import type { ArtifactUse } from "../domain/lineage.ts";
import { LOG_STREAMS, type LogStream } from "../domain/log.ts";
import type { Json } from "../domain/primitives.ts";
import { sha256Hex } from "../lib/digest.ts";
import { HeldDirectory } from "../lib/files/held-directory.ts";
import { openRegular } from "../lib/files/regular-file.ts";
import { newId } from "../lib/ids.ts";
import { spoolUri } from "./artifact-uri.ts";
import { hashFile } from "./file-hash.ts";
import type { OutputIssue } from "./output-issue.ts";
import { holdArtifacts, ofAttemptFile, openAttemptFile } from "./own-place.ts";
import { versionMetadata } from "./recorded-version.ts";
import { type AttemptSpec, type ExitRecord, logFile } from "./spool-records.ts";
import { flushDirectories, storeDocuments } from "./stored-copy.ts";

interface AttemptDocument {
  readonly kind: ArtifactKind;
  readonly name: string;
  readonly text: string;
}

export interface DocumentsInput {
  readonly jobDir: string;
  readonly attemptDir: string;
  readonly spec: AttemptSpec;
  readonly exit: ExitRecord;
  /** What the attempt leaves besides, each as an artifact with this text. */
  readonly documents?: readonly AttemptDocument[];
  /** SHA-256 of a script job's text; null for others. */
  readonly scriptSha256: string | null;
  readonly outputs: readonly NewArtifact[];
  readonly issues: readonly OutputIssue[];
  readonly used: readonly ArtifactUse[];
  readonly relayVersion: string;
  readonly hostname: string;
  /** Done when the way to `artifacts`, its entry included, is flushed; left out where only that entry is missing. */
  readonly way?: (() => Promise<void>) | undefined;
  /** Aborting it ends the reading of logs with its reason. */
  readonly signal?: AbortSignal;
  /** Aborting it leaves out the log that is being read. */
  readonly canceled?: AbortSignal;
}

export interface Documents {
  readonly artifacts: readonly NewArtifact[];
  /** Logs that were left out because of `canceled`. */
  readonly left: readonly LogStream[];
}

/**
 * The artifacts that every ended attempt has besides its outputs: stdout and stderr where there are such files, log_capture and
 * provenance. Logs are referenced in the spool; the documents are written to `artifacts`, each whole or absent.
 */
export async function attemptDocuments(input: DocumentsInput): Promise<Documents> {
  using place = holdArtifacts(input.jobDir);
  const logs: NewArtifact[] = [];
  const left: LogStream[] = [];
  for (const stream of LOG_STREAMS) {
    try {
      const artifact = await logArtifact(stream, input);
      if (artifact !== null) logs.push(artifact);
    } catch (error) {
      if (input.canceled?.aborted !== true || input.signal?.aborted === true) throw error;
      left.push(stream);
    }
  }
  const documents = await stored(input, place.path, [
    ...(input.documents ?? []),
    { kind: "log_capture", name: "log-capture.json", text: asText(logCapture(input)) },
    { kind: "provenance", name: "provenance.json", text: asText(provenance(input, logs)) },
  ]);
  return { artifacts: [...logs, ...documents], left };
}

async function logArtifact(stream: LogStream, input: DocumentsInput): Promise<NewArtifact | null> {
  const { attemptDir, spec, exit } = input;
  const file = path.join(attemptDir, logFile(stream));
  const recorded = exit.streams[stream];
  const version = ofAttemptFile(file, versionOf, null);
  // Whatever took its place is not the attempt's output.
  if (version === null) return null;
  // The shim's digest is of exactly the bytes that it wrote; without it, or for a file of another length, what is there counts, up to that length.
  const isRecorded = recorded.sha256 !== null && BigInt(recorded.kept) === version.size;
  const content = isRecorded
    ? { size: recorded.kept, sha256: recorded.sha256!, stat: version }
    : await hashedLog(file, recorded.kept, input);
  if (content === null) return null;
  return {
    artifact_id: newId("artifact"),
    kind: stream,
    name: logFile(stream),
    uri: spoolUri(`${path.basename(attemptDir)}/${logFile(stream)}`),
    size_bytes: content.size,
    sha256: content.sha256,
    metadata: { attempt: spec.attempt, stored: true, complete: recorded.complete, ...versionMetadata(content.stat) },
  };
}

/** Null where it is no regular file. */
function versionOf(file: string): fs.BigIntStats | null {
  const opened = openRegular(file);
  if (typeof opened === "string") return null;
  try {
    return fs.fstatSync(opened.fd, { bigint: true });
  } finally {
    fs.closeSync(opened.fd);
  }
}

/** Up to its first `max` bytes; null where it is no regular file any more. */
async function hashedLog(file: string, max: number, input: DocumentsInput) {
  const handle = await openAttemptFile(file);
  if (typeof handle === "string") return null;
  try {
    const stat = await handle.stat({ bigint: true });
    return { ...(await hashFile(handle, { limit: Math.min(max, Number(stat.size)), signal: eitherOf(input) })), stat };
  } finally {
    await handle.close();
  }
}

const eitherOf = ({ signal, canceled }: DocumentsInput): AbortSignal =>
  AbortSignal.any([signal, canceled].filter((one) => one !== undefined));

async function stored(
  { spec, jobDir, way }: DocumentsInput,
  directory: string,
  documents: readonly AttemptDocument[],
): Promise<NewArtifact[]> {
  const ids = documents.map(() => newId("artifact"));
  using job = new HeldDirectory(path.dirname(jobDir), path.basename(jobDir));
  await way?.();
  const stats = await storeDocuments(
    directory,
    documents.map(({ text }, at) => ({ name: ids[at]!, text })),
    way === undefined ? [job.path] : [],
  );
  return documents.map(({ kind, name, text }, at) => ({
    artifact_id: ids[at]!,
    kind,
    name,
    uri: spoolUri(`artifacts/${ids[at]}`),
    size_bytes: Buffer.byteLength(text),
    sha256: sha256Hex(text),
    metadata: { attempt: spec.attempt, stored: true, ...versionMetadata(stats[at]!) },
  }));
}

/** Flush the way to a job's documents, before there are any: its directory's entry, and that of `artifacts`, which is made. */
export async function flushWay(jobDir: string): Promise<void> {
  using _made = holdArtifacts(jobDir);
  using job = new HeldDirectory(path.dirname(jobDir), path.basename(jobDir));
  await flushDirectories([job.path, path.dirname(jobDir)]);
}

const asText = (content: Json): string => `${JSON.stringify(content, null, 2)}\n`;

/** What became of the attempt's output, byte for byte. */
const logCapture = ({ spec, exit }: DocumentsInput): Json => ({
  schema_version: "clio-relay.log-capture.v1",
  job_id: spec.job_id,
  attempt: spec.attempt,
  quota: { stream_bytes: spec.quota.stream_bytes, job_bytes: spec.quota.job_bytes, used: { ...spec.quota.used } },
  streams: { stdout: { ...exit.streams.stdout }, stderr: { ...exit.streams.stderr } },
});

/** What was run, where, on what, and what it left. Of the environment, the names only: values may be secrets of the user's. */
function provenance(input: DocumentsInput, logs: readonly NewArtifact[]): Json {
  const { spec, exit } = input;
  return {
    schema_version: "clio-relay.provenance.v1",
    relay_version: input.relayVersion,
    cluster: spec.cluster,
    job_id: spec.job_id,
    attempt: spec.attempt,
    host: input.hostname,
    command: {
      argv: [...spec.argv],
      script_sha256: input.scriptSha256,
      workdir: spec.workdir,
      login: spec.login,
      env_setup_sha256: spec.env_setup === null ? null : sha256Hex(spec.env_setup),
      env_names: Object.keys(spec.env).sort(),
      timeout_seconds: spec.timeout_seconds,
    },
    started_at: exit.started_at,
    ended_at: exit.ended_at,
    outcome: { ...exit.outcome, residual: [...exit.outcome.residual] },
    usage: exit.usage === null ? null : { ...exit.usage },
    used_artifacts: input.used.map((used) => ({ ...used })),
    logs: logs.map(reference),
    outputs: input.outputs.map(reference),
    output_issues: input.issues.map((issue) => ({ ...issue })),
  };
}

const reference = (artifact: NewArtifact): Json => ({
  artifact_id: artifact.artifact_id,
  name: artifact.name,
  uri: artifact.uri,
  size_bytes: artifact.size_bytes,
  sha256: artifact.sha256,
});
