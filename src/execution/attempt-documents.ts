import fs from "node:fs";
import path from "node:path";
import type { ArtifactKind, NewArtifact } from "../domain/artifact.ts";
import type { UsedArtifact } from "../domain/job.ts";
import { LOG_STREAMS, type LogStream } from "../domain/log.ts";
import type { Json } from "../domain/primitives.ts";
import { isErrno } from "../lib/atomic-file.ts";
import { sha256Hex } from "../lib/digest.ts";
import { newId } from "../lib/ids.ts";
import { spoolUri } from "./artifact-uri.ts";
import { artifactsDirectory } from "./attempt-dir.ts";
import { openBeneath } from "./beneath.ts";
import { hashFile } from "./file-hash.ts";
import type { OutputIssue } from "./output-issue.ts";
import { versionMetadata } from "./recorded-version.ts";
import { type AttemptSpec, type ExitRecord, logFile } from "./spool-records.ts";
import { flushDirectory, storeDocument } from "./stored-copy.ts";

export interface DocumentsInput {
  readonly jobDir: string;
  readonly attemptDir: string;
  readonly spec: AttemptSpec;
  readonly exit: ExitRecord;
  /** SHA-256 of a script job's text; null for others. */
  readonly scriptSha256: string | null;
  readonly outputs: readonly NewArtifact[];
  readonly issues: readonly OutputIssue[];
  readonly used: readonly UsedArtifact[];
  readonly relayVersion: string;
  readonly hostname: string;
}

/**
 * The artifacts that every ended attempt has besides its outputs: stdout and stderr where there are such files, log_capture and
 * provenance. Logs are referenced in the spool; the documents are written to `artifacts`, each whole or absent.
 */
export async function attemptDocuments(input: DocumentsInput): Promise<NewArtifact[]> {
  const logs: NewArtifact[] = [];
  for (const stream of LOG_STREAMS) {
    const artifact = await logArtifact(stream, input);
    if (artifact !== null) logs.push(artifact);
  }
  const documents = [
    await document("log_capture", "log-capture.json", logCapture(input), input),
    await document("provenance", "provenance.json", provenance(input, logs), input),
  ];
  flushDirectory(artifactsDirectory(input.jobDir));
  return [...logs, ...documents];
}

async function logArtifact(stream: LogStream, { jobDir, attemptDir, spec, exit }: DocumentsInput): Promise<NewArtifact | null> {
  const relative = `${path.basename(attemptDir)}/${logFile(stream)}`;
  const recorded = exit.streams[stream];
  const file = path.join(jobDir, relative);
  let stat: fs.BigIntStats;
  try {
    stat = await fs.promises.lstat(file, { bigint: true });
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
  // Whatever took its place is not the attempt's output.
  if (!stat.isFile()) return null;
  const size = Number(stat.size);
  // The shim's digest is of exactly the bytes that it wrote; without it, or for a file of another length, what is there counts.
  const content =
    recorded.sha256 !== null && recorded.kept === size ? { size, sha256: recorded.sha256 } : await hashBeneath(jobDir, relative);
  return {
    artifact_id: newId("artifact"),
    kind: stream,
    name: logFile(stream),
    uri: spoolUri(relative),
    size_bytes: content.size,
    sha256: content.sha256,
    metadata: { attempt: spec.attempt, stored: true, complete: recorded.complete, ...versionMetadata(stat) },
  };
}

async function hashBeneath(root: string, relative: string): Promise<{ size: number; sha256: string }> {
  const { handle, stat } = await openBeneath(root, relative);
  try {
    return await hashFile(handle, { limit: Number(stat.size) });
  } finally {
    await handle.close();
  }
}

async function document(kind: ArtifactKind, name: string, content: Json, { jobDir, spec }: DocumentsInput): Promise<NewArtifact> {
  const artifactId = newId("artifact");
  const text = `${JSON.stringify(content, null, 2)}\n`;
  const directory = artifactsDirectory(jobDir);
  const stat = await storeDocument(directory, artifactId, text);
  return {
    artifact_id: artifactId,
    kind,
    name,
    uri: spoolUri(`artifacts/${artifactId}`),
    size_bytes: Buffer.byteLength(text),
    sha256: sha256Hex(text),
    metadata: { attempt: spec.attempt, stored: true, ...versionMetadata(stat) },
  };
}

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
