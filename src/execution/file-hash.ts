import type fs from "node:fs";
import { RelayError } from "../domain/errors.ts";
import { readUpTo } from "../lib/files/regular-file.ts";

/** What tells one version of a file from another (stat(2)). */
export interface FileVersion {
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly ino: bigint;
  readonly dev: bigint;
}

export const sameVersion = (a: FileVersion, b: FileVersion): boolean =>
  a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.ino === b.ino && a.dev === b.dev;

const CHUNK_BYTES = 256 * 1024;

export interface HashOptions {
  /** Bytes that are read at most, so that a file which grows while it is read comes to an end. */
  readonly limit: number;
  /** Given each piece; must be done with it when it returns. */
  readonly sink?: (bytes: Uint8Array) => Promise<void>;
  /** Aborting it ends the reading with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Read a file from its start to its end, or to the limit, and hash it.
 *
 * @returns size and SHA-256 of what was read
 * @throws RelayError artifact_unreadable when the system refuses to read
 */
export async function hashFile(
  handle: fs.promises.FileHandle,
  { limit, sink, signal }: HashOptions,
): Promise<{ size: number; sha256: string }> {
  signal?.throwIfAborted();
  const hash = new Bun.CryptoHasher("sha256");
  // One is hashed while the other is read into.
  let [buffer, next] = [Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, limit)), Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, limit))];
  const read = (at: number): Promise<number> =>
    at < limit ? readAt(handle, buffer.subarray(0, Math.min(buffer.length, limit - at)), at) : Promise.resolve(0);
  let size = 0;
  let coming = read(0);
  try {
    for (let count = await coming; count > 0; count = await coming) {
      const bytes = buffer.subarray(0, count);
      [buffer, next] = [next, buffer];
      size += count;
      coming = read(size);
      hash.update(bytes);
      await sink?.(bytes);
      signal?.throwIfAborted();
    }
  } finally {
    // Whoever called may close the file.
    await coming.catch(() => undefined);
  }
  return { size, sha256: hash.digest("hex") };
}

/** Whether there are bytes from an offset on. Some files of the kernel's have more than the size that they tell. */
export const goesOnAt = async (handle: fs.promises.FileHandle, offset: number): Promise<boolean> =>
  (await readAt(handle, Buffer.alloc(1), offset)) > 0;

const readAt = (handle: fs.promises.FileHandle, buffer: Buffer, offset: number): Promise<number> =>
  readable(offset, async () => (await handle.read(buffer, 0, buffer.length, offset)).bytesRead);

/** As readUpTo. @throws RelayError artifact_unreadable when the system refuses to read */
export const readPiece = (handle: fs.promises.FileHandle, bytes: Buffer, offset: number): Promise<number> =>
  readable(offset, () => readUpTo(handle, bytes, offset));

async function readable(offset: number, read: () => Promise<number>): Promise<number> {
  try {
    return await read();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new RelayError("artifact_unreadable", `cannot be read (${code})`, { offset, system_code: code }, undefined, { cause: error });
  }
}
