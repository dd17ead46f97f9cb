import fs from "node:fs";
import path from "node:path";
import type { Artifact } from "../domain/artifact.ts";
import { RelayError } from "../domain/errors.ts";
import { type ArtifactPlace, placeOf } from "./artifact-uri.ts";
import { isBeneath, type OpenFile, openBeneath } from "./beneath.ts";
import { hashFile, readPiece, sameVersion } from "./file-hash.ts";
import { inputBelowSpool } from "./input-place.ts";
import { compareVersion, VerifiedVersions } from "./recorded-version.ts";

/** An artifact's file, opened and found to be the recorded one: by its version, or where that cannot tell, by its digest. */
export interface OpenArtifact {
  readonly size: number;
  /**
   * Bytes [start, end). Of the whole file, the SHA-256 is verified before the last piece is given; of a part, that the file is still
   * the version that was opened. The stream fails with artifact_changed otherwise. Closes the file at its end; may be called once.
   */
  stream(range?: { readonly start: number; readonly end: number }): ReadableStream<Uint8Array>;
  /** Close without reading. */
  close(): Promise<void>;
}

const CHUNK_BYTES = 64 * 1024;
/** A part of up to this is read at once. */
const PART_BYTES = 512 * 1024;

/**
 * Open the file behind an artifact.
 *
 * @param jobDir the job's directory in the spool
 * @throws RelayError artifact_unreadable, artifact_changed, path_escapes_root
 */
export async function openArtifact(artifact: Artifact, jobDir: string): Promise<OpenArtifact> {
  const place = placeOf(artifact.uri);
  const file = await openPlace(place, artifact, jobDir);
  try {
    await assertRecorded(artifact, file, place.kind);
  } catch (error) {
    await file.handle.close();
    throw error;
  }
  return {
    size: artifact.size_bytes,
    stream: (range = { start: 0, end: artifact.size_bytes }) => contentStream(artifact, file, range),
    close: () => file.handle.close(),
  };
}

async function openPlace(place: ArtifactPlace, artifact: Artifact, jobDir: string): Promise<OpenFile> {
  const spoolDir = path.dirname(jobDir);
  if (place.kind !== "file") {
    const below = place.kind === "spool" ? `${path.basename(jobDir)}/${place.relative}` : inputBelowSpool(place.relative);
    return openBeneath(spoolDir, below);
  }
  const { root } = artifact.metadata;
  if (typeof root !== "string" || !isBeneath(root, place.path)) {
    throw new RelayError("path_escapes_root", "the file does not lie below the working directory that was recorded", {
      path: place.path,
    });
  }
  // The root was without links when it was recorded; a link that took its place since would lead elsewhere.
  const real = await fs.promises.realpath(root).catch(() => null);
  if (real !== root) throw new RelayError("artifact_unreadable", "the working directory is no longer there", { path: root });
  return openBeneath(root, path.relative(root, place.path));
}

const verified = new VerifiedVersions();

async function assertRecorded(artifact: Artifact, { handle, stat }: OpenFile, kind: ArtifactPlace["kind"]): Promise<void> {
  // A log is what was written to it; bytes behind that, which the job added itself, are no part of the artifact.
  const isLog = artifact.kind === "stdout" || artifact.kind === "stderr";
  if (isLog ? stat.size < BigInt(artifact.size_bytes) : stat.size !== BigInt(artifact.size_bytes))
    throw artifactChanged(artifact, { found_size_bytes: Number(stat.size) });
  const version = compareVersion(artifact.metadata, stat);
  if (version === "same" || verified.has(artifact.artifact_id, stat)) return;
  // A spool that was restored from a backup has other times and the same bytes; what a job left in place and wrote again counts as changed.
  if (version === "rewritten" && kind === "file") throw artifactChanged(artifact, { found_mtime_ns: String(stat.mtimeNs) });
  const { sha256 } = await hashFile(handle, { limit: artifact.size_bytes });
  if (sha256 !== artifact.sha256) throw artifactChanged(artifact, { found_sha256: sha256 });
  if (!sameVersion(stat, await handle.stat({ bigint: true }))) throw artifactChanged(artifact, {});
  verified.add(artifact.artifact_id, stat);
}

const artifactChanged = (artifact: Artifact, data: Record<string, unknown>): RelayError =>
  new RelayError("artifact_changed", `the file is no longer the one that was recorded: ${artifact.name}`, {
    artifact_id: artifact.artifact_id,
    size_bytes: artifact.size_bytes,
    sha256: artifact.sha256,
    ...data,
  });

function contentStream(artifact: Artifact, file: OpenFile, range: { start: number; end: number }): ReadableStream<Uint8Array> {
  const whole = range.start === 0 && range.end === artifact.size_bytes;
  const hash = whole ? new Bun.CryptoHasher("sha256") : null;
  const { handle } = file;
  const chunkBytes = range.end - range.start <= PART_BYTES ? PART_BYTES : CHUNK_BYTES;
  let position = range.start;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const bytes = Buffer.allocUnsafeSlow(Math.min(chunkBytes, range.end - position));
          const count = await readPiece(handle, bytes, position);
          position += count;
          hash?.update(bytes.subarray(0, count));
          if (count < bytes.length) throw artifactChanged(artifact, { ends_at: position });
          if (position < range.end) {
            controller.enqueue(bytes);
            return;
          }
          await assertUntouched();
          if (bytes.length > 0) controller.enqueue(bytes);
          await handle.close();
          controller.close();
        } catch (error) {
          await handle.close().catch(() => undefined);
          controller.error(error);
        }
      },
      cancel: () => handle.close(),
    },
    { highWaterMark: 0 },
  );

  /** At the end, with the last piece still held back. */
  async function assertUntouched(): Promise<void> {
    const found = hash?.digest("hex");
    if (found !== undefined && found !== artifact.sha256) throw artifactChanged(artifact, { found_sha256: found });
    if (!sameVersion(file.stat, await handle.stat({ bigint: true }))) throw artifactChanged(artifact, {});
  }
}
