import type fs from "node:fs";

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

/**
 * Read a file from its start to its end, hash it, and hand each piece to `sink` (which must be done with it when it returns).
 *
 * @returns size and SHA-256 of what was read
 */
export async function hashFile(
  handle: fs.promises.FileHandle,
  sink: ((bytes: Uint8Array) => Promise<void>) | null,
  signal?: AbortSignal,
): Promise<{ size: number; sha256: string }> {
  const hash = new Bun.CryptoHasher("sha256");
  const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let size = 0;
  for (;;) {
    signal?.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, size);
    if (bytesRead === 0) return { size, sha256: hash.digest("hex") };
    const bytes = buffer.subarray(0, bytesRead);
    hash.update(bytes);
    await sink?.(bytes);
    size += bytesRead;
  }
}
