import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { edgeCursor, USE_EVIDENCE } from "../../domain/lineage.ts";
import { LogStream } from "../../domain/log.ts";
import { ByteCount, Id, Sequence, Sha256 } from "../../domain/primitives.ts";
import { completeUtf8Length } from "../../lib/text/utf8.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";
import { logPiece, textPiece } from "../log-piece.ts";
import { defineTool, READS, type Tool } from "../tool.ts";
import { ArtifactView, artifactView, fitting, isReadable, LOG_BYTES, TRUNCATED } from "../views.ts";
import { LogView } from "../wait.ts";
import { JOB, LIMIT, logLimit, offset, PAGED, said, WHERE } from "./arguments.ts";

const readLog = defineTool({
  name: "relay_read_job_log",
  title: "What a job wrote",
  profile: "user",
  description:
    "Reads a piece of what a job wrote to standard output or error, as text; offsets count bytes. Without offset it is the end of it, which is what one wants of a job that failed. Go on from next_offset until eof.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({ ...JOB, stream: v.optional(said(LogStream, "which of the two"), "stdout"), offset, limit: logLimit(LOG_BYTES) }),
  output: v.object({
    job_id: Id,
    stream: LogStream,
    ...LogView.entries,
    missing_bytes: v.pipe(ByteCount, v.description("bytes of this piece that are no longer there")),
  }),
  async run({ job_id, stream, offset: from, limit, ...where }, call) {
    const place = await call.clusters.ofJob(job_id, where, call.signal);
    const piece = await logPiece(place, { jobId: job_id, stream, offset: from }, limit, call.signal);
    const { text, offset: begins, next_offset, eof, missing_bytes } = piece;
    return { job_id, stream, text, offset: begins, next_offset, eof, missing_bytes };
  },
});

const listArtifacts = defineTool({
  name: "relay_list_artifacts",
  title: "The files that a job left",
  profile: "user",
  description:
    "Lists the files that a job left: what matched its outputs, and its logs, with size and SHA-256. relay_read_artifact gives their bytes.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({ ...JOB, ...PAGED }),
  output: v.object({ job_id: Id, artifacts: v.array(ArtifactView), next_cursor: Sequence, total: v.number(), truncated: TRUNCATED }),
  async run({ job_id, cursor, limit, ...where }, call) {
    const { client, entry } = await call.clusters.ofJob(job_id, where, call.signal);
    const read = (signal: AbortSignal) => client.artifacts(job_id, { cursor, limit, signal });
    const page = await asked(`the worker of ${entry.name}`, call.signal, read);
    const { items, truncated } = fitting(page.artifacts);
    const next_cursor = truncated ? items.at(-1)!.sequence + 1 : page.next_cursor;
    return { job_id, artifacts: items.map(artifactView), next_cursor, total: page.total, truncated };
  },
});

/** What an agent gets of an artifact: text where it is text. */
export const PieceView = v.object({
  artifact: ArtifactView,
  offset: ByteCount,
  next_offset: ByteCount,
  eof: v.boolean(),
  encoding: v.picklist(["utf-8", "base64"]),
  data: v.string(),
});

/**
 * A piece of an artifact, as text where it is UTF-8. Text that would be far longer as JSON is cut, where not all of it is needed.
 *
 * @throws RelayError resource_ownership_refused of one that is not for agents
 */
export async function readPiece(
  { client, entry }: Place,
  artifactId: string,
  from: number,
  limit: number,
  signal: AbortSignal,
  needed: "all" | "some" = "some",
): Promise<v.InferOutput<typeof PieceView>> {
  const worker = `the worker of ${entry.name}`;
  const artifact = await asked(worker, signal, (bounded) => client.artifact(artifactId, bounded));
  const view = artifactView(artifact);
  if (!isReadable(artifact))
    throw new RelayError("resource_ownership_refused", `an artifact of kind ${artifact.kind} is not for agents`, { kind: artifact.kind });
  if (from >= artifact.size_bytes) return { artifact: view, offset: from, next_offset: from, eof: true, encoding: "utf-8", data: "" };
  const bytes = await asked(worker, signal, async (bounded) => {
    const response = await client.artifactContent(artifactId, { offset: from, limit, signal: bounded });
    return new Uint8Array(await response.arrayBuffer());
  });
  const whole = from + bytes.length >= artifact.size_bytes;
  const piece = textPiece(bytes.length, needed === "all" ? Number.POSITIVE_INFINITY : limit, (count) => textOf(bytes, count, whole));
  const taken = piece?.taken ?? bytes.length;
  return {
    artifact: view,
    offset: from,
    next_offset: from + taken,
    eof: from + taken >= artifact.size_bytes,
    ...(piece === null ? { encoding: "base64", data: Buffer.from(bytes).toString("base64") } : { encoding: "utf-8", data: piece.text }),
  };
}

/** The first bytes of a piece as text, up to where a character ends; null where they are none, or too few for one. @param whole whether nothing follows the piece */
function textOf(bytes: Uint8Array, count: number, whole: boolean): { readonly text: string; readonly taken: number } | null {
  const taken = whole && count === bytes.length ? count : completeUtf8Length(bytes.subarray(0, count));
  const text = decoded(bytes.subarray(0, taken));
  return text === null || (taken === 0 && count > 0) ? null : { text, taken };
}

function decoded(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

const readArtifact = defineTool({
  name: "relay_read_artifact",
  title: "A piece of an artifact",
  profile: "user",
  description:
    "Reads bytes of a file that a job left: as text where they are UTF-8, else as base64. Go on from next_offset until eof; whoever needs all of a large file has it fetched with clio-relay job read-artifact.",
  hints: READS,
  clusters: "all",
  input: v.strictObject({
    artifact_id: said(Id, "id of the artifact"),
    ...WHERE,
    offset: v.optional(v.unwrap(offset), 0),
    limit: logLimit(LOG_BYTES),
  }),
  output: PieceView,
  async run({ artifact_id, offset: from, limit, ...where }, call) {
    return readPiece(await call.clusters.ofArtifact(artifact_id, where, call.signal), artifact_id, from, limit, call.signal);
  },
});

const EdgeView = v.object({
  artifact_id: Id,
  consumer_job_id: Id,
  producer_job_id: Id,
  sha256: Sha256,
  evidence: v.nullable(v.picklist(USE_EVIDENCE)),
});
type Edge = v.InferOutput<typeof EdgeView>;

const lineage = defineTool({
  name: "relay_artifact_lineage",
  title: "What used what",
  profile: "user",
  description:
    "Follows lineage in both directions. With job_id: the artifacts that the job used, and those that it left. With artifact_id: the job that left it, and the jobs that used it. Exactly one of the two.",
  hints: READS,
  clusters: "all",
  input: v.pipe(
    v.strictObject({
      job_id: v.optional(JOB.job_id),
      artifact_id: v.optional(said(Id, "id of the artifact")),
      ...WHERE,
      cursor: v.optional(said(v.pipe(v.string(), v.maxLength(64)), "next_cursor of the page before")),
      limit: LIMIT,
    }),
    v.check(({ job_id, artifact_id }) => (job_id === undefined) !== (artifact_id === undefined), "exactly one of job_id and artifact_id"),
  ),
  output: v.object({
    job_id: v.pipe(v.nullable(Id), v.description("the job, or the one that left the artifact")),
    artifact: v.nullable(ArtifactView),
    used: v.pipe(v.array(EdgeView), v.description("what the job used; of an artifact: empty")),
    used_by: v.pipe(v.array(EdgeView), v.description("who used the artifact; of a job: empty")),
    produced: v.pipe(v.array(ArtifactView), v.description("what the job left, the first of it; relay_list_artifacts lists all")),
    next_cursor: v.string(),
    total: v.number(),
    truncated: TRUNCATED,
  }),
  async run({ job_id, artifact_id, cluster, route_revision, cursor, limit }, call) {
    const where = { cluster, route_revision };
    const query = { limit, ...(cursor === undefined ? {} : { cursor }) };
    const ask = <T>(entry: Place["entry"], work: (signal: AbortSignal) => Promise<T>) =>
      asked(`the worker of ${entry.name}`, call.signal, work);
    if (job_id !== undefined) {
      const { client, entry } = await call.clusters.ofJob(job_id, where, call.signal);
      const page = await ask(entry, (signal) => client.lineage.usedArtifacts(job_id, { ...query, signal }));
      const left = await ask(entry, (signal) => client.artifacts(job_id, { limit: 50, signal }));
      const { items, truncated } = fitting(page.used_artifacts.map(edgeView), 24 * 1024);
      const produced = fitting(left.artifacts.map(artifactView), 44 * 1024).items;
      const next_cursor = truncated ? cursorAt(page.used_artifacts, items) : page.next_cursor;
      return { job_id, artifact: null, used: items, used_by: [], produced, next_cursor, total: page.total, truncated };
    }
    const id = artifact_id!;
    const { client, entry } = await call.clusters.ofArtifact(id, where, call.signal);
    const artifact = artifactView(await ask(entry, (signal) => client.artifact(id, signal)));
    const page = await ask(entry, (signal) => client.lineage.usedBy(id, { ...query, signal }));
    const { items, truncated } = fitting(page.used_by.map(edgeView));
    const next_cursor = truncated ? cursorAt(page.used_by, items) : page.next_cursor;
    return { job_id: artifact.job_id, artifact, used: [], used_by: items, produced: [], next_cursor, total: page.total, truncated };
  },
});

const edgeView = ({
  artifact_id,
  consumer_job_id,
  producer_job_id,
  sha256,
  provenance,
}: Omit<Edge, "evidence"> & { provenance: { evidence: Edge["evidence"] } | null }): Edge => ({
  artifact_id,
  consumer_job_id,
  producer_job_id,
  sha256,
  evidence: provenance?.evidence ?? null,
});

const cursorAt = (all: readonly { readonly sequence: number }[], shown: readonly unknown[]): string =>
  edgeCursor(all[shown.length]!.sequence);

export const outputTools: readonly Tool[] = [readLog, listArtifacts, readArtifact, lineage];
