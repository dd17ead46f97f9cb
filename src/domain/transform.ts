import * as v from "valibot";
import { LIMITS } from "./limits.ts";
import { distinct, EvidentUse } from "./lineage.ts";
import { Id, jsonBytes, Sha256, Timestamp, text } from "./primitives.ts";

/** How the inputs of an activity were found out. */
export const TRANSFORM_MECHANISMS = ["harness", "tool-schema", "change-feed", "model", "none"] as const;

const platform = v.optional(v.nullable(text(256)), null);

/** What the activity ran in, by how surely that is known. */
export const TransformEnvironment = v.pipe(
  v.variant("tier", [
    v.strictObject({ tier: v.literal("declared"), description: text(4_096), platform }),
    v.strictObject({ tier: v.literal("lockfile-hash"), lockfile: text(4_096), sha256: Sha256, platform }),
    v.strictObject({
      tier: v.literal("image-digest"),
      image: text(4_096),
      digest: v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/, "must be sha256: and 64 hexadecimal digits")),
      platform,
    }),
  ]),
  v.check(
    (environment) => jsonBytes(environment) <= LIMITS.transformEnvironmentBytes,
    `takes at most ${LIMITS.transformEnvironmentBytes} bytes of JSON`,
  ),
);

const FIELDS = {
  /** Name of the activity where it was recorded. */
  activity_id: text(512),
  mechanism: v.picklist(TRANSFORM_MECHANISMS),
  environment: TransformEnvironment,
  /** `reproducible`: again the same bytes. */
  replay: v.picklist(["reproducible", "re-runnable"]),
  replay_reason: text(4_096),
  /** Exactly what the job pins, each with how that is known. */
  used_evidence: v.pipe(v.array(EvidentUse), v.maxLength(LIMITS.artifactUses), distinct()),
};

/** What a client records about what a job did to its inputs. */
export const NewTransform = v.pipe(
  v.strictObject({ job_id: v.optional(Id), ...FIELDS }),
  v.check((transform) => jsonBytes(transform) <= LIMITS.transformBytes, `takes at most ${LIMITS.transformBytes} bytes of JSON`),
);
export type NewTransform = v.InferOutput<typeof NewTransform>;
/** The transform as a client may write it, with optional members left out. */
export type NewTransformInput = v.InferInput<typeof NewTransform>;

/** The one transform of a job. Immutable. */
export const TransformRef = v.strictObject({ job_id: Id, ...FIELDS, created_at: Timestamp });
export type TransformRef = v.InferOutput<typeof TransformRef>;
