import fs from "node:fs";
import path from "node:path";
import type { ContentKey, UploadKey } from "../domain/input.ts";
import { fsyncDirectory, isErrno } from "../lib/files/atomic-file.ts";
import type { HeldDirectory } from "../lib/files/held-directory.ts";
import { hashFile } from "./file-hash.ts";
import { openPart } from "./input-part.ts";
import { CONTENT_NAME, holdContent, holdInputs, partName } from "./input-place.ts";
import { VerifiedVersions } from "./recorded-version.ts";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, COPYFILE_EXCL, COPYFILE_FICLONE } = fs.constants;
const READ_ONLY = 0o400;
/** Nothing in it can be removed or replaced by accident. */
const CLOSED = 0o500;
const OPEN = 0o700;

/** Contents whose bytes were read and found right, by digest. */
const verified = new VerifiedVersions();

/** Whether the content is there, by its size; its bytes are looked at when it is named. */
export function hasContent(spoolDir: string, key: ContentKey): boolean {
  const held = holdContent(spoolDir, key.sha256);
  if (held === null) return false;
  using place = held;
  const stat = fs.lstatSync(path.join(place.path, CONTENT_NAME), { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.size === key.size_bytes;
}

/** Somebody has to do with it. */
export function touchContent(spoolDir: string, sha256: string, now: Date): void {
  const held = holdContent(spoolDir, sha256);
  if (held === null) return;
  using place = held;
  fs.utimesSync(place.path, now, now);
}

/**
 * A part whose bytes are all there and have the digest becomes the content, under whatever name it came. May be repeated after a crash anywhere in it. Its names are not flushed before it
 * gets one that somebody has on record.
 */
export async function completeContent(spoolDir: string, key: ContentKey, part: UploadKey = key): Promise<void> {
  const handle = await openPart(spoolDir, part);
  try {
    await handle.chmod(READ_ONLY);
    await handle.sync();
    using inputs = holdInputs(spoolDir);
    makeDirectory(path.join(inputs.path, key.sha256));
    using place = openForChange(spoolDir, key.sha256);
    fs.renameSync(path.join(inputs.path, partName(part)), path.join(place.path, CONTENT_NAME));
    fs.chmodSync(place.path, CLOSED);
    verified.add(key.sha256, await handle.stat({ bigint: true }));
  } finally {
    await handle.close();
  }
}

/**
 * Give the content one more name, if it has not got it, and make sure that its bytes are right.
 *
 * @returns the file of that name, which outlives a crash; null where the content is not there, or was damaged: then it is removed
 */
export async function nameContent(spoolDir: string, key: ContentKey, logicalName: string): Promise<fs.BigIntStats | null> {
  const content = await openContent(spoolDir, key);
  if (content === null) return null;
  try {
    if (!(await isRight(content, key))) {
      removeContent(spoolDir, key.sha256);
      return null;
    }
    using place = openForChange(spoolDir, key.sha256);
    try {
      await link(place, logicalName, await content.stat({ bigint: true }), key);
      using inputs = holdInputs(spoolDir);
      fsyncDirectory(place.path);
      fsyncDirectory(inputs.path);
    } finally {
      fs.chmodSync(place.path, CLOSED);
    }
    // A link changes the time of the last change, and nothing else.
    verified.add(key.sha256, await content.stat({ bigint: true }));
    return fs.lstatSync(path.join(place.path, logicalName), { bigint: true });
  } finally {
    await content.close();
  }
}

/** Remove a content with all its names. */
export function removeContent(spoolDir: string, sha256: string): void {
  const held = holdContent(spoolDir, sha256);
  if (held !== null) {
    using place = held;
    fs.chmodSync(place.path, OPEN);
  }
  using inputs = holdInputs(spoolDir);
  fs.rmSync(path.join(inputs.path, sha256), { force: true, recursive: true });
}

async function openContent(spoolDir: string, key: ContentKey): Promise<fs.promises.FileHandle | null> {
  const held = holdContent(spoolDir, key.sha256);
  if (held === null) return null;
  using place = held;
  try {
    return await fs.promises.open(path.join(place.path, CONTENT_NAME), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ELOOP", "ENXIO")) return null;
    throw error;
  }
}

async function isRight(content: fs.promises.FileHandle, key: ContentKey): Promise<boolean> {
  const stat = await content.stat({ bigint: true });
  if (!stat.isFile() || stat.size !== BigInt(key.size_bytes)) return false;
  if (verified.has(key.sha256, stat)) return true;
  const { sha256 } = await hashFile(content, { limit: key.size_bytes });
  return sha256 === key.sha256;
}

async function link(place: HeldDirectory, logicalName: string, content: fs.BigIntStats, key: ContentKey): Promise<void> {
  const target = path.join(place.path, logicalName);
  const found = fs.lstatSync(target, { throwIfNoEntry: false, bigint: true });
  if (found?.ino === content.ino && found.dev === content.dev) return;
  // A copy where the file system has no links, or has no more of them; or the name of a content that was damaged.
  if (found?.isFile() && (await isRightFile(target, key))) return;
  fs.rmSync(target, { force: true, recursive: true });
  const source = path.join(place.path, CONTENT_NAME);
  try {
    fs.linkSync(source, target);
  } catch (error) {
    if (!isErrno(error, "EPERM", "ENOTSUP", "ENOSYS", "EMLINK")) throw error;
    await copy(source, target);
  }
}

async function isRightFile(file: string, key: ContentKey): Promise<boolean> {
  const handle = await fs.promises.open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const { size, sha256 } = await hashFile(handle, { limit: key.size_bytes + 1 });
    return size === key.size_bytes && sha256 === key.sha256;
  } finally {
    await handle.close();
  }
}

async function copy(source: string, target: string): Promise<void> {
  await fs.promises.copyFile(source, target, COPYFILE_EXCL | COPYFILE_FICLONE);
  const handle = await fs.promises.open(target, O_RDONLY | O_NOFOLLOW);
  try {
    await handle.chmod(READ_ONLY);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function makeDirectory(directory: string): void {
  try {
    fs.mkdirSync(directory, { mode: OPEN });
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    // A link or a file in its place is somebody else's doing.
    if (!fs.lstatSync(directory).isDirectory()) {
      fs.rmSync(directory, { force: true });
      fs.mkdirSync(directory, { mode: OPEN });
    }
  }
}

/** Hold a content's directory with leave to change it. */
function openForChange(spoolDir: string, sha256: string): HeldDirectory {
  const place = holdContent(spoolDir, sha256);
  if (place === null) throw Object.assign(new Error(`ENOENT: the directory of ${sha256} is gone`), { code: "ENOENT" });
  fs.chmodSync(place.path, OPEN);
  return place;
}
