import * as v from "valibot";
import { LIMITS } from "./limits.ts";
import { Id, jsonBytes, looseText, Sequence, Sha256, Timestamp, text } from "./primitives.ts";

/** How somebody knows that a job consumes an artifact. */
export const USE_EVIDENCE = ["schema-arg", "hash-pair", "lease-window", "authority", "assertion"] as const;

const optional = <S extends v.GenericSchema>(schema: S) => v.optional(v.nullable(schema), null);

/** What a client says about why the job consumes an artifact. */
export const UseProvenance = v.strictObject({
  schema_version: v.literal("clio-relay.artifact-use.v1"),
  evidence: v.picklist(USE_EVIDENCE),
  /** Who says so, where it is not the submitter. */
  authority: optional(text(4_096)),
  /** What it is called there. */
  external_ref: optional(text(4_096)),
  /** The argument or setting that names the artifact. */
  arg: optional(text(512)),
  note: optional(looseText(512)),
});
export type UseProvenance = v.InferOutput<typeof UseProvenance>;

const USE_FIELDS = { artifact_id: Id, sha256: Sha256 };

const fits = <T>() =>
  v.check<T, string>((use) => jsonBytes(use) <= LIMITS.artifactUseBytes, `takes at most ${LIMITS.artifactUseBytes} bytes of JSON`);

/** Immutable pin of an artifact that the job consumes. */
export const ArtifactUse = v.pipe(v.strictObject({ ...USE_FIELDS, provenance: optional(UseProvenance) }), fits());
export type ArtifactUse = v.InferOutput<typeof ArtifactUse>;

/** The same where it has to be said how that is known. */
export const EvidentUse = v.pipe(v.strictObject({ ...USE_FIELDS, provenance: UseProvenance }), fits());

/** Each artifact at most once. */
export const distinct = <T extends { readonly artifact_id: string }>() =>
  v.check<T[], string>((uses) => new Set(uses.map((use) => use.artifact_id)).size === uses.length, "names an artifact twice");

/** What one job consumes. */
export const ArtifactUses = v.pipe(
  v.array(ArtifactUse),
  v.maxLength(LIMITS.artifactUses),
  distinct(),
  v.check(
    (uses) => uses.length === 0 || jsonBytes(uses) <= LIMITS.artifactUsesBytes,
    `take at most ${LIMITS.artifactUsesBytes} bytes of JSON`,
  ),
);

/** That a job consumes an artifact of another one. Immutable; made when the consumer is submitted. */
export const UsedArtifactRef = v.strictObject({
  /** Number of the edge in this queue; it only grows. */
  sequence: Sequence,
  artifact_id: Id,
  consumer_job_id: Id,
  producer_job_id: Id,
  sha256: Sha256,
  provenance: v.nullable(UseProvenance),
  created_at: Timestamp,
});
export type UsedArtifactRef = v.InferOutput<typeof UsedArtifactRef>;

const CURSOR = /^edge_(\d{20})$/;

/** A position among edges as clients see it: opaque, and the same for pages of either direction. */
export const edgeCursor = (sequence: number): string => `edge_${String(sequence).padStart(20, "0")}`;

/** A position among edges, as edgeCursor writes it. */
export const EdgeCursor = v.pipe(v.string(), v.regex(CURSOR, "must be a cursor of such a page"));

/** The number that a cursor stands for: at least 1, and never more than JSON carries exactly. */
export const edgeSequence = (cursor: string): number =>
  Math.min(Math.max(Number(CURSOR.exec(cursor)?.[1] ?? 1), 1), Number.MAX_SAFE_INTEGER);
