import type { Artifact, NewArtifact } from "../../domain/artifact.ts";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { Page } from "../../domain/page.ts";
import type { Metadata } from "../../domain/primitives.ts";
import type { PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import type { JobEdit } from "./job-edit.ts";
import { jobSequence } from "./job-rows.ts";
import { pageOf, rowsOfPage } from "./pages.ts";
import { boundedJson, parsed, storable } from "./record-json.ts";

const COLUMNS = "sequence, artifact_id, kind, name, uri, size_bytes, sha256, metadata, created_at";

type ArtifactRow = Omit<Artifact, "job_id" | "metadata"> & { readonly metadata: string };

const toArtifact = (row: ArtifactRow, jobId: string): Artifact => ({
  ...row,
  job_id: jobId,
  metadata: parsed<Metadata>(row.metadata, row.artifact_id),
});

const lastSequence = (r: Reading, job: number): number =>
  r.sql.get<{ last: number | null }>("SELECT max(sequence) AS last FROM artifacts WHERE job = ?", job)?.last ?? 0;

/** Record artifacts after those that the job has, each with its event. Callers save the edit. */
export function insertArtifacts(w: Writing, edit: JobEdit, artifacts: readonly NewArtifact[]): void {
  if (artifacts.length === 0) return;
  let sequence = lastSequence(w, edit.row.sequence);
  for (const artifact of artifacts) {
    if (w.sql.get("SELECT 1 FROM artifacts WHERE artifact_id = ?", artifact.artifact_id) !== null) {
      throw new RelayError("state_conflict", `artifact ${artifact.artifact_id} is recorded already`, { artifact_id: artifact.artifact_id });
    }
    sequence += 1;
    w.sql.run(
      `INSERT INTO artifacts (job, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      edit.row.sequence,
      sequence,
      artifact.artifact_id,
      artifact.kind,
      storable(artifact.name),
      storable(artifact.uri),
      artifact.size_bytes,
      artifact.sha256,
      boundedJson(artifact.metadata, LIMITS.eventRecordBytes, `the metadata of ${artifact.artifact_id}`),
      w.now,
    );
    edit.event({
      event_type: "artifact.created",
      message: `${artifact.name}, ${artifact.size_bytes} bytes`,
      payload: {
        artifact_id: artifact.artifact_id,
        sequence,
        kind: artifact.kind,
        name: artifact.name,
        size_bytes: artifact.size_bytes,
        sha256: artifact.sha256,
      },
    });
  }
}

export function artifacts(r: Reading, jobId: string, page: PageRequest): Page<Artifact> {
  const job = jobSequence(r, jobId);
  const sizes = r.sql.all<{ bytes: number }>(
    `SELECT octet_length(name) + octet_length(uri) + octet_length(metadata) AS bytes
     FROM artifacts WHERE job = ? AND sequence >= ? ORDER BY sequence LIMIT ?`,
    job,
    page.cursor,
    page.limit,
  );
  const rows = r.sql.all<ArtifactRow>(
    `SELECT ${COLUMNS} FROM artifacts WHERE job = ? AND sequence >= ? ORDER BY sequence LIMIT ?`,
    job,
    page.cursor,
    rowsOfPage(sizes),
  );
  return pageOf(
    rows,
    (row) => row.sequence,
    (row) => toArtifact(row, jobId),
    page,
    lastSequence(r, job),
  );
}

export function artifact(r: Reading, artifactId: string): Artifact {
  const found = r.sql.get<ArtifactRow & { readonly job_id: string }>(
    `SELECT jobs.job_id, ${COLUMNS.split(", ")
      .map((column) => `artifacts.${column}`)
      .join(", ")} FROM artifacts CROSS JOIN jobs ON jobs.sequence = artifacts.job WHERE artifacts.artifact_id = ?`,
    artifactId,
  );
  if (found === null) throw new RelayError("artifact_not_found", `there is no artifact ${artifactId}`, { artifact_id: artifactId });
  return toArtifact(found, found.job_id);
}
