import * as v from "valibot";
import { ByteCount, Id, Metadata, Sequence, Sha256, Timestamp, text } from "./primitives.ts";

export const ARTIFACT_KINDS = [
  "stdout",
  "stderr",
  "console",
  "console_stderr",
  "log_capture",
  "provenance",
  "execution_output",
  "input",
  "jarvis_pipeline",
  "jarvis_pipeline_reference",
  "mcp_request",
  "mcp_result",
  "runtime_metadata",
  "agent_last_message",
] as const;
export const ArtifactKind = v.picklist(ARTIFACT_KINDS);
export type ArtifactKind = v.InferOutput<typeof ArtifactKind>;

/** A file that a job left behind. Immutable: reads verify size and SHA-256. */
export const Artifact = v.strictObject({
  artifact_id: Id,
  job_id: Id,
  /** From 1 within the job. */
  sequence: Sequence,
  kind: ArtifactKind,
  /** File name for people: the path below the working directory for outputs. */
  name: text(4_096),
  /** `spool:` and a path below the job's spool directory, `input:` and the place of a staged file, or `file:` and the path of a file referenced in place. */
  uri: text(8_192),
  size_bytes: ByteCount,
  sha256: Sha256,
  metadata: Metadata,
  created_at: Timestamp,
});
export type Artifact = v.InferOutput<typeof Artifact>;

/** An artifact before the store gives it its place. */
export type NewArtifact = Omit<Artifact, "job_id" | "sequence" | "created_at">;
