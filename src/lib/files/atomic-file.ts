import fs from "node:fs";
import path from "node:path";
import { completeUtf8Length } from "../text/utf8.ts";

/** Flush a directory's entries. File systems that cannot (EINVAL, ENOTSUP) and Windows are passed over. */
export function fsyncDirectory(directory: string): void {
  if (process.platform === "win32") return;
  const fd = fs.openSync(directory, fs.constants.O_RDONLY);
  try {
    fs.fsyncSync(fd);
  } catch (error) {
    if (!isErrno(error, "EINVAL", "ENOTSUP")) throw error;
  } finally {
    fs.closeSync(fd);
  }
}

function fsyncFile(file: string): void {
  const fd = fs.openSync(file, "r+");
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** Whether an error is a system error with one of the codes. */
export const isErrno = (error: unknown, ...codes: string[]): error is NodeJS.ErrnoException =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));

/** Bytes of a name that are left in that of what is in the making: a name may have 255 (NAME_MAX), and the mark has its part of them. */
const NAME_BYTES = 190;

/** Where a file waits for its final name: beside it, so that taking the name is one rename(2). */
export function besideName(target: string, ending: string): string {
  const name = Buffer.from(path.basename(target)).subarray(0, NAME_BYTES);
  const kept = name.toString("utf8", 0, completeUtf8Length(name));
  return path.join(path.dirname(target), `.${kept}.${process.pid}.${crypto.randomUUID()}.${ending}`);
}

function writeTemporary(target: string, data: string | Uint8Array, mode: number, durable: boolean): string {
  const temporary = besideName(target, "tmp");
  const fd = fs.openSync(temporary, "wx", mode);
  try {
    fs.writeFileSync(fd, data);
    if (durable) fs.fsyncSync(fd);
  } catch (error) {
    fs.closeSync(fd);
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  fs.closeSync(fd);
  return temporary;
}

/**
 * Replace a file as a whole: temporary file, fsync, rename, fsync of the directory. Readers see the old or the new content.
 *
 * @param durable false leaves out both flushes, for what need not outlive a crash of the machine
 */
export function writeFileAtomic(target: string, data: string | Uint8Array, { mode = 0o600, durable = true } = {}): void {
  takePlace(writeTemporary(target, data, mode, durable), target, durable);
}

/**
 * Give a file that is complete, and flushed where that matters, its final name; a file of that name is replaced. Where that fails, it
 * is removed.
 */
export function takePlace(temporary: string, target: string, durable = true): void {
  try {
    renameOver(temporary, target);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  if (durable) fsyncDirectory(path.dirname(target));
}

const BUSY_TRIES = process.platform === "win32" ? 100 : 0;
const BUSY_MS = 10;

/** rename(2). Windows refuses it for as long as somebody has the target open; whoever reads a small file is done in a moment. */
function renameOver(temporary: string, target: string): void {
  for (let left = BUSY_TRIES; ; left--) {
    try {
      fs.renameSync(temporary, target);
      return;
    } catch (error) {
      if (left <= 0 || !isErrno(error, "EPERM", "EACCES", "EBUSY")) throw error;
      Bun.sleepSync(BUSY_MS);
    }
  }
}

/**
 * Give a complete file a name that nobody has. Exactly one of several callers gets `taken`, whatever they run on: link(2) is atomic on
 * local file systems and on NFS. `held`: somebody else has the name. `unsupported`: the file system has no hard links.
 */
export function takeFreeName(temporary: string, target: string): "taken" | "held" | "unsupported" {
  try {
    fs.linkSync(temporary, target);
    return "taken";
  } catch (error) {
    // NFS may have made the link, lost the answer, and tried again.
    if (isErrno(error, "EEXIST")) return isSameFile(temporary, target) ? "taken" : "held";
    if (isErrno(error, "EPERM", "ENOTSUP", "ENOSYS", "EMLINK", "EOPNOTSUPP")) return "unsupported";
    throw error;
  }
}

function isSameFile(one: string, other: string): boolean {
  const [a, b] = [fs.lstatSync(one, { bigint: true }), fs.lstatSync(other, { bigint: true })];
  return a.dev === b.dev && a.ino === b.ino;
}

/**
 * Content that waits, complete, for the name under which it is to appear. It can be made, and flushed, before that name is known, which
 * leaves one flush for the moment that counts.
 */
export class PreparedFile {
  readonly #temporary: string;

  /**
   * @param directory where it waits; on the file system of the later name, or publishing starts anew there
   * @param flushed false leaves the content to the flush at publishing: where nobody has time meanwhile, one flush of both takes less
   */
  constructor(
    private readonly directory: string,
    name: string,
    readonly data: string,
    private readonly flushed = true,
  ) {
    this.#temporary = writeTemporary(path.join(directory, name), data, 0o600, flushed);
  }

  /**
   * Give it its name and flush the directory, or find that somebody else has taken the name. Exactly one of several callers gets
   * true. Where there are no hard links, O_EXCL decides, and a crash may then leave the file empty or cut short, as it may one that was not flushed before. The file where it
   * waited stays until `discard`, so that whoever is in a hurry removes it later.
   *
   * @param durable false leaves out what is not flushed yet, for what need not outlive a crash of the machine
   */
  publish(target: string, durable = true): boolean {
    try {
      const outcome = takeFreeName(this.#temporary, target);
      if (outcome === "unsupported") return createByOpening(target, this.data);
      if (outcome === "held") return false;
    } catch (error) {
      const elsewhere = this.directory !== path.dirname(target);
      if (elsewhere && isErrno(error, "EXDEV", "ENOENT")) return createFileExclusive(target, this.data);
      throw error;
    }
    if (!durable) return true;
    if (!this.flushed) fsyncFile(target);
    fsyncDirectory(path.dirname(target));
    return true;
  }

  discard(): void {
    fs.rmSync(this.#temporary, { force: true });
  }
}

/** Create a file as a whole, or find that somebody else has; see PreparedFile.publish. */
export function createFileExclusive(target: string, data: string): boolean {
  const file = new PreparedFile(path.dirname(target), path.basename(target), data);
  try {
    return file.publish(target);
  } finally {
    file.discard();
  }
}

function createByOpening(target: string, data: string): boolean {
  let fd: number;
  try {
    fd = fs.openSync(target, "wx", 0o600);
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  }
  try {
    fs.writeFileSync(fd, data);
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
  fsyncDirectory(path.dirname(target));
  return true;
}

/** Make a directory and its parents, private to the user, and flush the entry. */
export function makePrivateDirectory(directory: string): void {
  if (fs.mkdirSync(directory, { recursive: true, mode: 0o700 }) !== undefined) fsyncDirectory(path.dirname(directory));
}
