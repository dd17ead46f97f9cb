import { RelayError } from "../../domain/errors.ts";
import type { ArtifactUse } from "../../domain/lineage.ts";
import type { NewTransform, TransformRef } from "../../domain/transform.ts";
import { canonicalJson, sha256Hex } from "../../lib/digest.ts";
import type { Reading, Writing } from "./access.ts";
import { jobRow, jobSequence, toJob } from "./job-rows.ts";
import { parsed } from "./record-json.ts";

interface TransformRow {
  readonly digest: string;
  readonly created_at: string;
  readonly transform: string;
}

/** Ids that a failure lists of each kind. */
const LISTED = 20;

/**
 * Record the job's transform, or find that it is recorded already.
 *
 * @throws job_not_found; transform_conflict for another one than is recorded; transform_refused where its evidence is not of what the job pins
 */
export function recordTransform(
  w: Writing,
  jobId: string,
  given: NewTransform,
): { readonly transform: TransformRef; readonly existing: boolean } {
  const row = jobRow(w, jobId);
  const { job_id: _job, ...said } = given;
  const content = { ...said, used_evidence: said.used_evidence.toSorted((a, b) => (a.artifact_id < b.artifact_id ? -1 : 1)) };
  const text = canonicalJson(content);
  const digest = sha256Hex(text);
  const known = find(w, row.sequence);
  if (known !== null) {
    if (known.digest === digest) return { transform: toTransform(known, jobId), existing: true };
    throw new RelayError("transform_conflict", `the job has another transform on record, from ${known.created_at}`, {
      job_id: jobId,
      existing_digest: known.digest,
      submitted_digest: digest,
    });
  }
  refuseOtherThan(toJob(row).used_artifact_refs, content.used_evidence);
  w.sql.run("INSERT INTO transforms (job, digest, created_at, transform) VALUES (?, ?, ?, ?)", row.sequence, digest, w.now, text);
  w.touch(`job:${jobId}`);
  return { transform: { job_id: jobId, ...content, created_at: w.now }, existing: false };
}

/** The job's transform; null where it has none. */
export function transform(r: Reading, jobId: string): TransformRef | null {
  const row = find(r, jobSequence(r, jobId));
  return row === null ? null : toTransform(row, jobId);
}

const find = (r: Reading, job: number): TransformRow | null =>
  r.sql.get<TransformRow>("SELECT digest, created_at, transform FROM transforms WHERE job = ?", job);

const toTransform = ({ transform: text, created_at }: TransformRow, jobId: string): TransformRef => ({
  job_id: jobId,
  ...parsed<Omit<TransformRef, "job_id" | "created_at">>(text, `the transform of ${jobId}`),
  created_at,
});

type Pin = Pick<ArtifactUse, "artifact_id" | "sha256">;

/** What a job pins is all that is known to be consumed by it: evidence of less leaves a gap, evidence of more has no edge. */
function refuseOtherThan(pins: readonly Pin[], evidence: readonly Pin[]): void {
  const pinned = new Map(pins.map((pin) => [pin.artifact_id, pin.sha256]));
  const shown = new Set(evidence.map((use) => use.artifact_id));
  const missing = [...pinned.keys()].filter((id) => !shown.has(id));
  const unpinned = evidence.filter((use) => !pinned.has(use.artifact_id)).map((use) => use.artifact_id);
  const differing = evidence.filter((use) => (pinned.get(use.artifact_id) ?? use.sha256) !== use.sha256).map((use) => use.artifact_id);
  if (missing.length + unpinned.length + differing.length === 0) return;
  throw new RelayError(
    "transform_refused",
    `of the artifacts that the job pins, ${missing.length} have no evidence and ${differing.length} another digest; ${unpinned.length} of the evidence are not pinned`,
    { missing: missing.slice(0, LISTED), unpinned: unpinned.slice(0, LISTED), digest_differs: differing.slice(0, LISTED) },
  );
}
