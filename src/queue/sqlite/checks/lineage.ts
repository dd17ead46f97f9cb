import * as v from "valibot";
import { type ArtifactUse, ArtifactUses } from "../../../domain/lineage.ts";
import { TransformRef } from "../../../domain/transform.ts";
import { sha256Hex } from "../../../lib/digest.ts";
import type { Reading, Writing } from "../access.ts";
import type { Budget } from "./budget.ts";
import type { Damage, Range, Steps, Tally } from "./damage.ts";

interface Consumer {
  readonly sequence: number;
  readonly job_id: string;
  readonly created_at: string;
  readonly used_artifact_refs: string;
}

interface Edge {
  readonly producer: number;
  readonly artifact: number;
  readonly sha256: string;
  readonly provenance: string | null;
}

const CONSUMER = `SELECT sequence, job_id, created_at, used_artifact_refs FROM jobs WHERE sequence BETWEEN ? AND ?
  AND (used_artifact_refs <> '[]' OR EXISTS (SELECT 1 FROM used_artifacts AS u WHERE u.consumer = jobs.sequence)) ORDER BY sequence LIMIT 1`;

/** Every job's edges are those that its record pins. */
export function* usedArtifactEdges(r: Reading, budget: Budget, { from, to }: Range, tally: Tally): Steps {
  for (let next = from; ; ) {
    const consumer = r.sql.get<Consumer>(CONSUMER, next, to);
    if (consumer === null) return;
    const { due, unknown, edges } = compared(r, consumer);
    tally("used_artifacts", edges.length);
    const subject = consumer.job_id;
    if (due !== null && !same(due, edges)) {
      const detail = `it has ${edges.length} edges that are not those of the ${due.length} artifacts that it pins`;
      yield { check: "used_artifact", subject, detail, mend: (w) => follow(w, consumer.sequence) };
    }
    for (const id of unknown) {
      yield { check: "used_artifact", subject, detail: `it pins ${id}, which is not there with that SHA-256`, mend: null };
    }
    next = consumer.sequence + 1;
    budget.take(1 + 2 * edges.length, consumer.used_artifact_refs.length);
    if (budget.spent) {
      budget.renew();
      yield null;
    }
  }
}

interface Comparison {
  /** The edges that the record asks for; null where it cannot be read, which is another check's finding. */
  readonly due: readonly Edge[] | null;
  /** Pinned artifacts that are not there. */
  readonly unknown: readonly string[];
  readonly edges: readonly Edge[];
}

function compared(r: Reading, { sequence, used_artifact_refs }: Consumer): Comparison {
  const edges = r.sql.all<Edge>("SELECT producer, artifact, sha256, provenance FROM used_artifacts WHERE consumer = ?", sequence);
  const pins = pinsOf(used_artifact_refs);
  if (pins === null) return { due: null, unknown: [], edges };
  const due: Edge[] = [];
  const unknown: string[] = [];
  for (const { artifact_id, sha256, provenance } of pins) {
    const place = r.sql.get<{ producer: number; artifact: number }>(
      "SELECT job AS producer, sequence AS artifact FROM artifacts WHERE artifact_id = ? AND sha256 = ?",
      artifact_id,
      sha256,
    );
    if (place === null) unknown.push(artifact_id);
    else due.push({ ...place, sha256, provenance: provenance === null ? null : JSON.stringify(provenance) });
  }
  return { due, unknown, edges };
}

function pinsOf(text: string): readonly ArtifactUse[] | null {
  try {
    const read = v.safeParse(ArtifactUses, JSON.parse(text));
    return read.success ? read.output : null;
  } catch {
    return null;
  }
}

const keyOf = (edge: Edge): string => JSON.stringify([edge.producer, edge.artifact, edge.sha256, edge.provenance]);

function same(due: readonly Edge[], edges: readonly Edge[]): boolean {
  const wanted = new Set(due.map(keyOf));
  return wanted.size === edges.length && edges.every((edge) => wanted.has(keyOf(edge)));
}

/** Edges that are right keep their numbers. */
function follow(w: Writing, sequence: number): void {
  const consumer = w.sql.get<Consumer>(CONSUMER, sequence, sequence);
  if (consumer === null) return;
  const { due } = compared(w, consumer);
  if (due === null) return;
  const missing = new Map(due.map((edge) => [keyOf(edge), edge]));
  const rows = w.sql.all<Edge & { readonly number: number }>(
    "SELECT sequence AS number, producer, artifact, sha256, provenance FROM used_artifacts WHERE consumer = ?",
    sequence,
  );
  for (const row of rows) {
    if (!missing.delete(keyOf(row))) w.sql.run("DELETE FROM used_artifacts WHERE sequence = ?", row.number);
  }
  for (const { producer, artifact, sha256, provenance } of missing.values()) {
    w.sql.run(
      "INSERT INTO used_artifacts (consumer, producer, artifact, sha256, created_at, provenance) VALUES (?, ?, ?, ?, ?, ?)",
      sequence,
      producer,
      artifact,
      sha256,
      consumer.created_at,
      provenance,
    );
  }
}

interface Recorded {
  readonly job: number;
  readonly job_id: string;
  readonly digest: string;
  readonly created_at: string;
  readonly transform: string;
}

/** Every transform can be read, and is the one that was recorded. */
export function* transformRecords(r: Reading, budget: Budget, { from, to }: Range, tally: Tally): Steps {
  for (let next = from; ; ) {
    const row = r.sql.get<Recorded>(
      `SELECT t.job, jobs.job_id, t.digest, t.created_at, t.transform FROM transforms AS t CROSS JOIN jobs ON jobs.sequence = t.job
       WHERE t.job BETWEEN ? AND ? ORDER BY t.job LIMIT 1`,
      next,
      to,
    );
    if (row === null) return;
    tally("transforms", 1);
    const detail = wrongWith(row);
    if (detail !== null) yield damaged(row.job_id, detail);
    next = row.job + 1;
    budget.take(2, row.transform.length);
    if (budget.spent) {
      budget.renew();
      yield null;
    }
  }
}

const damaged = (subject: string, detail: string): Damage => ({ check: "transform", subject, detail, mend: null });

function wrongWith({ job_id, digest, created_at, transform }: Recorded): string | null {
  if (sha256Hex(transform) !== digest) return "it is not the one that was recorded";
  try {
    return v.is(TransformRef, { ...JSON.parse(transform), job_id, created_at }) ? null : "it does not fit its schema";
  } catch {
    return "it is not JSON";
  }
}
