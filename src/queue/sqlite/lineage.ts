import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { ArtifactUse, UsedArtifactRef, UseProvenance } from "../../domain/lineage.ts";
import type { Page } from "../../domain/page.ts";
import type { PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { jobSequence } from "./job-rows.ts";
import { pageOf, rowsOfPage } from "./pages.ts";
import { parsedOrNull } from "./record-json.ts";

/** Whose a job is: both or neither. */
export interface Owner {
  readonly owner_session_id: string | null;
  readonly owner_session_generation_id: string | null;
}

/** A pin whose artifact was found: the job that left it by its sequence, and its number there. */
export interface ResolvedUse {
  readonly artifact_id: string;
  readonly kind: string;
  readonly producer: number;
  readonly artifact: number;
  readonly sha256: string;
  readonly provenance: UseProvenance | null;
}

interface Pinned extends Owner {
  readonly artifact_id: string;
  readonly kind: string;
  readonly producer: number;
  readonly artifact: number;
  readonly sha256: string;
  readonly job_id: string;
}

/** What is pinned, in this order of tables: the ids lead. */
export const PINNED = `SELECT a.artifact_id, a.kind, a.job AS producer, a.sequence AS artifact, a.sha256, p.job_id, p.owner_session_id, p.owner_session_generation_id
  FROM json_each(?) AS pin CROSS JOIN artifacts AS a ON a.artifact_id = pin.value CROSS JOIN jobs AS p ON p.sequence = a.job`;

/**
 * Find what is pinned, and check that it may be. Changes nothing.
 *
 * @param owner the consumer's
 * @param consumersMax how many consumers an artifact may have
 * @throws artifact_not_found, resource_ownership_refused, job_submission_refused
 */
export function resolveUses(
  r: Reading,
  owner: Owner,
  uses: readonly ArtifactUse[],
  consumersMax: number = LIMITS.consumersPerArtifact,
): ResolvedUse[] {
  const pinned = new Map<string, Pinned>();
  for (const row of r.sql.all<Pinned>(PINNED, JSON.stringify(uses.map((use) => use.artifact_id)))) pinned.set(row.artifact_id, row);
  const newest = r.sql.get<{ sequence: number | null }>("SELECT max(sequence) AS sequence FROM jobs")?.sequence ?? 0;
  return uses.map(({ artifact_id, sha256, provenance }) => {
    const found = pinned.get(artifact_id);
    if (found === undefined) throw missingArtifact(artifact_id);
    checkPin(found, owner, sha256);
    const { kind, producer, artifact } = found;
    // Consumers are younger than the producer, so that there are no more of them than younger jobs.
    if (newest - producer >= consumersMax && hasAllConsumers(r, producer, artifact, consumersMax)) {
      throw new RelayError("job_submission_refused", `artifact ${artifact_id} has ${consumersMax} consumers, as many as it may`, {
        cause: "artifact_consumers",
        artifact_id,
        limit: consumersMax,
      });
    }
    return { artifact_id, kind, producer, artifact, sha256, provenance };
  });
}

/** @throws resource_ownership_refused, job_submission_refused */
function checkPin({ artifact_id, job_id, sha256: recorded, ...whose }: Pinned, owner: Owner, sha256: string): void {
  if (whose.owner_session_id !== owner.owner_session_id || whose.owner_session_generation_id !== owner.owner_session_generation_id) {
    throw new RelayError("resource_ownership_refused", `artifact ${artifact_id} is not of the same owner session`, {
      artifact_id,
      producer_job_id: job_id,
    });
  }
  if (recorded !== sha256) {
    throw new RelayError("job_submission_refused", `artifact ${artifact_id} has the SHA-256 ${recorded}, not ${sha256}`, {
      cause: "artifact_digest",
      artifact_id,
      recorded_sha256: recorded,
      submitted_sha256: sha256,
    });
  }
}

export const missingArtifact = (artifactId: string): RelayError =>
  new RelayError("artifact_not_found", `there is no artifact ${artifactId}`, { artifact_id: artifactId });

const hasAllConsumers = (r: Reading, producer: number, artifact: number, consumersMax: number): boolean =>
  r.sql.get("SELECT 1 FROM used_artifacts WHERE producer = ? AND artifact = ? LIMIT 1 OFFSET ?", producer, artifact, consumersMax - 1) !==
  null;

const EDGE = `INSERT INTO used_artifacts (consumer, producer, artifact, sha256, created_at, provenance)
  SELECT ?, edge.value ->> 0, edge.value ->> 1, edge.value ->> 2, ?, edge.value ->> 3 FROM json_each(?) AS edge ORDER BY edge.key`;

/** One edge for each, in their order. @param consumer jobs.sequence of the job that uses them */
export function insertEdges(w: Writing, consumer: number, uses: readonly ResolvedUse[], createdAt = w.now): void {
  if (uses.length === 0) return;
  const edges = uses.map(({ producer, artifact, sha256, provenance }) => [
    producer,
    artifact,
    sha256,
    provenance === null ? null : JSON.stringify(provenance),
  ]);
  w.sql.run(EDGE, consumer, createdAt, JSON.stringify(edges));
}

interface EdgeRow extends Omit<UsedArtifactRef, "provenance"> {
  readonly provenance: string | null;
}

/** Edges with the ids of what they join, in this order of tables: the index of edges leads. */
const EDGES = `SELECT u.sequence, a.artifact_id, c.job_id AS consumer_job_id, p.job_id AS producer_job_id, u.sha256, u.provenance, u.created_at
  FROM used_artifacts AS u CROSS JOIN jobs AS c ON c.sequence = u.consumer CROSS JOIN jobs AS p ON p.sequence = u.producer
  CROSS JOIN artifacts AS a ON a.job = u.producer AND a.sequence = u.artifact`;

const SIZES = "SELECT 400 + coalesce(octet_length(provenance), 0) AS bytes FROM used_artifacts AS u";

const COUNT = "SELECT count(*) AS n FROM used_artifacts AS u";

const OF_CONSUMER = "WHERE u.consumer = ?";
const OF_ARTIFACT = "WHERE u.producer = ? AND u.artifact = ?";
const FROM_ON = "AND u.sequence >= ? ORDER BY u.sequence LIMIT ?";

export const usedArtifacts = (r: Reading, jobId: string, page: PageRequest): Page<UsedArtifactRef> =>
  edges(r, OF_CONSUMER, [jobSequence(r, jobId)], page);

export function usedBy(r: Reading, artifactId: string, page: PageRequest): Page<UsedArtifactRef> {
  const place = r.sql.get<{ job: number; sequence: number }>("SELECT job, sequence FROM artifacts WHERE artifact_id = ?", artifactId);
  if (place === null) throw missingArtifact(artifactId);
  return edges(r, OF_ARTIFACT, [place.job, place.sequence], page);
}

function edges(r: Reading, which: typeof OF_CONSUMER | typeof OF_ARTIFACT, ends: number[], page: PageRequest): Page<UsedArtifactRef> {
  const sizes = r.sql.all<{ bytes: number }>(`${SIZES} ${which} ${FROM_ON}`, ...ends, page.cursor, page.limit);
  const rows = r.sql.all<EdgeRow>(`${EDGES} ${which} ${FROM_ON}`, ...ends, page.cursor, rowsOfPage(sizes));
  return pageOf(
    rows,
    (row) => row.sequence,
    (row) => ({ ...row, provenance: parsedOrNull<UseProvenance>(row.provenance, `edge ${row.sequence}`) }),
    page,
    r.sql.get<{ n: number }>(`${COUNT} ${which}`, ...ends)?.n ?? 0,
  );
}

/** Jobs that use an artifact of this one. */
export function consumersOf(
  r: Reading,
  jobId: string,
  limit: number,
): { readonly job_ids: readonly string[]; readonly truncated: boolean } {
  const rows = r.sql.all<{ job_id: string }>(
    `SELECT c.job_id FROM (SELECT DISTINCT consumer FROM used_artifacts WHERE producer = ? ORDER BY consumer LIMIT ?) AS u
     CROSS JOIN jobs AS c ON c.sequence = u.consumer`,
    jobSequence(r, jobId),
    limit + 1,
  );
  return { job_ids: rows.slice(0, limit).map((row) => row.job_id), truncated: rows.length > limit };
}
