import fs from "node:fs";
import path from "node:path";

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

/** Whether an error is a system error with one of the codes. */
export const isErrno = (error: unknown, ...codes: string[]): error is NodeJS.ErrnoException =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));

function writeTemporary(target: string, data: string | Uint8Array, mode: number): string {
  const temporary = path.join(path.dirname(target), `.${path.basename(target)}.${process.pid}.${crypto.randomUUID()}.tmp`);
  const fd = fs.openSync(temporary, "wx", mode);
  try {
    fs.writeFileSync(fd, data);
    fs.fsyncSync(fd);
  } catch (error) {
    fs.closeSync(fd);
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  fs.closeSync(fd);
  return temporary;
}

/** Replace a file as a whole: temporary file, fsync, rename, fsync of the directory. Readers see the old or the new content. */
export function writeFileAtomic(target: string, data: string | Uint8Array, mode = 0o600): void {
  const temporary = writeTemporary(target, data, mode);
  try {
    fs.renameSync(temporary, target);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  fsyncDirectory(path.dirname(target));
}

/**
 * Content that waits, complete and flushed, for the name under which it is to appear. It can be made before that name is known, which
 * leaves one flush for the moment that counts.
 */
export class PreparedFile {
  readonly #temporary: string;

  /** @param directory where it waits; on the file system of the later name, or publishing starts anew there */
  constructor(
    private readonly directory: string,
    name: string,
    readonly data: string,
    private readonly mode = 0o600,
  ) {
    this.#temporary = writeTemporary(path.join(directory, name), data, mode);
  }

  /**
   * Give it its name and flush the directory, or find that somebody else has taken the name. Exactly one of several callers gets
   * true, whatever they run on: link(2) is atomic on local file systems and on NFS. Where links cannot be had, O_EXCL decides, and
   * a crash may then leave the file empty or cut short.
   */
  publish(target: string): boolean {
    try {
      fs.linkSync(this.#temporary, target);
    } catch (error) {
      if (isErrno(error, "EEXIST")) return false;
      const elsewhere = this.directory !== path.dirname(target);
      if (elsewhere && isErrno(error, "EXDEV", "ENOENT")) return createFileExclusive(target, this.data, this.mode);
      if (!isErrno(error, "EPERM", "ENOTSUP", "ENOSYS", "EMLINK", "EOPNOTSUPP")) throw error;
      return createByOpening(target, this.data, this.mode);
    } finally {
      this.discard();
    }
    fsyncDirectory(path.dirname(target));
    return true;
  }

  discard(): void {
    fs.rmSync(this.#temporary, { force: true });
  }
}

/** Create a file as a whole, or find that somebody else has; see PreparedFile.publish. */
export const createFileExclusive = (target: string, data: string, mode = 0o600): boolean =>
  new PreparedFile(path.dirname(target), path.basename(target), data, mode).publish(target);

function createByOpening(target: string, data: string, mode: number): boolean {
  let fd: number;
  try {
    fd = fs.openSync(target, "wx", mode);
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
