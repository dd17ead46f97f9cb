import * as v from "valibot";
import { Artifact } from "./artifact.ts";
import { IdempotencyKey, Job, OWNER, wholeOwner } from "./job.ts";
import { LIMITS } from "./limits.ts";
import { ByteCount, Id, Sha256, text } from "./primitives.ts";
import { LogicalName } from "./specs.ts";

/** Content by its digest and size. */
const CONTENT = { sha256: Sha256, size_bytes: ByteCount };

export const ContentKey = v.strictObject(CONTENT);
export type ContentKey = v.InferOutput<typeof ContentKey>;

/** What is uploaded: a content, or something whose digest is not known yet; then `sha256` is a name of the client's choice. */
const UPLOAD = { ...CONTENT, provisional: v.optional(v.literal(true)) };
export const UploadKey = v.strictObject(UPLOAD);
export type UploadKey = v.InferOutput<typeof UploadKey>;

/** How much of some content a worker has; see docs/staging.md. */
export const Upload = v.strictObject({
  ...UPLOAD,
  state: v.picklist(["absent", "partial", "complete"]),
  /** Bytes [0, offset) are there. */
  offset: ByteCount,
  /** At most so many bytes in one piece. */
  chunk_max_bytes: ByteCount,
});
export type Upload = v.InferOutput<typeof Upload>;

export const ContentQuery = v.strictObject({ contents: v.pipe(v.array(ContentKey), v.maxLength(LIMITS.inputFilesMax)) });
export const ContentAnswer = v.strictObject({ contents: v.array(Upload) });

/** A job can use what is of its own owner session and generation only, so that the same content is staged once for each. */
const described = { cluster: Id, logical_name: LogicalName, ...CONTENT, idempotency_key: IdempotencyKey, ...OWNER };

/** Content that is there becomes an artifact. */
export const NewInputArtifact = v.pipe(
  v.strictObject({ schema_version: v.literal("clio-relay.input-artifact.v1"), ...described }),
  wholeOwner(),
);
export type NewInputArtifact = v.InferOutput<typeof NewInputArtifact>;

/** The same with the content itself (RFC 4648, section 4). */
export const InputIngest = v.pipe(
  v.strictObject({ schema_version: v.literal("clio-relay.input-artifact-ingest.v1"), ...described, data_base64: v.string() }),
  wholeOwner(),
);
export type InputIngest = v.InferOutput<typeof InputIngest>;

/** The job that stands for the staging of a file, and the artifact that is its result. */
export const InputRecord = v.strictObject({
  job: Job,
  artifact: Artifact,
  /** Where the copy lies on the cluster; absent of workers that do not say it. */
  path: v.optional(text(4_096)),
});
export type InputRecord = v.InferOutput<typeof InputRecord>;

/** An input as somebody sees it who asks for the job. */
export const JobInput = v.strictObject({
  name: text(64),
  /** The variable that holds its path in the job. */
  variable: text(256),
  artifact_id: Id,
  logical_name: text(4_096),
  size_bytes: ByteCount,
  sha256: Sha256,
});
export type JobInput = v.InferOutput<typeof JobInput>;
