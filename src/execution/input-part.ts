import fs from "node:fs";
import path from "node:path";
import type { UploadKey } from "../domain/input.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import { regularSize } from "../lib/files/regular-file.ts";
import { hashFile } from "./file-hash.ts";
import { holdInputs, partName } from "./input-place.ts";

const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

/** How many bytes of the content have come; null where no upload of it has begun. Anything else in its place counts as none. */
export function partLength(spoolDir: string, key: UploadKey): number | null {
  using place = holdInputs(spoolDir);
  const size = regularSize(path.join(place.path, partName(key)));
  return typeof size === "number" ? Math.min(size, key.size_bytes) : null;
}

/** Begin an upload where none has begun. Whatever is no file in its place is somebody else's, and goes. */
export async function beginPart(spoolDir: string, key: UploadKey): Promise<void> {
  removePart(spoolDir, key);
  await (await openPart(spoolDir, key, O_CREAT)).close();
}

/**
 * Write the next bytes.
 *
 * @param meanwhile done while the system writes
 * @returns false where the part does not end at `offset` (any more), or is gone; then nothing was done
 */
export async function appendPart(
  spoolDir: string,
  key: UploadKey,
  offset: number,
  bytes: Uint8Array,
  meanwhile: () => void = () => undefined,
): Promise<boolean> {
  const handle = await openIfThere(spoolDir, key);
  if (handle === null) return false;
  try {
    if ((await handle.stat()).size !== offset) return false;
    try {
      let writing = handle.write(bytes, 0, bytes.length, offset);
      meanwhile();
      let at = (await writing).bytesWritten;
      for (; at < bytes.length; at += (await writing).bytesWritten) writing = handle.write(bytes, at, bytes.length - at, offset + at);
    } catch (error) {
      // A piece is there whole or not at all.
      await handle.truncate(offset).catch(() => undefined);
      throw error;
    }
    return true;
  } finally {
    await handle.close();
  }
}

/** Have what came written to the disk, where it is still there. */
export async function flushPart(spoolDir: string, key: UploadKey): Promise<void> {
  const handle = await openIfThere(spoolDir, key);
  try {
    await handle?.datasync();
  } finally {
    await handle?.close();
  }
}

/** Somebody has to do with it: what is swept is what nobody had to do with for long. */
export function touchPart(spoolDir: string, key: UploadKey, now: Date): void {
  using place = holdInputs(spoolDir);
  try {
    fs.lutimesSync(path.join(place.path, partName(key)), now, now);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}

export function removePart(spoolDir: string, key: UploadKey): void {
  using place = holdInputs(spoolDir);
  fs.rmSync(path.join(place.path, partName(key)), { force: true, recursive: true });
}

/** SHA-256 of what has come. */
export async function hashPart(spoolDir: string, key: UploadKey): Promise<string> {
  const handle = await openPart(spoolDir, key);
  try {
    return (await hashFile(handle, { limit: key.size_bytes })).sha256;
  } finally {
    await handle.close();
  }
}

/** @param create O_CREAT, or nothing @throws the system's error; ELOOP for a link in its place */
export async function openPart(spoolDir: string, key: UploadKey, create = 0): Promise<fs.promises.FileHandle> {
  using place = holdInputs(spoolDir);
  return await fs.promises.open(path.join(place.path, partName(key)), O_RDWR | create | O_NOFOLLOW | O_NONBLOCK, 0o600);
}

async function openIfThere(spoolDir: string, key: UploadKey): Promise<fs.promises.FileHandle | null> {
  try {
    return await openPart(spoolDir, key);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw error;
  }
}
