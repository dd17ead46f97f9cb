import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory, isErrno } from "../../lib/atomic-file.ts";

/**
 * A file whose room is taken before it is needed, so that a disk that fills up meanwhile does not keep it from being written. The
 * content appears under its name as a whole; the name need not be known before, only lie on the same file system.
 */
export class ReservedFile {
  #temporary: string;
  readonly #fd: number;

  constructor(
    directory: string,
    private readonly name: string,
    bytes: number,
  ) {
    this.#temporary = path.join(directory, `.${name}.${process.pid}.tmp`);
    this.#fd = fs.openSync(this.#temporary, "wx", 0o600);
    try {
      writeAll(this.#fd, Buffer.alloc(bytes, " "));
    } catch (error) {
      this.abandon();
      throw error;
    }
  }

  /**
   * Put the content under the file's name.
   *
   * @param directory where that is
   * @param durable whether it is flushed to the disk first
   * @returns false when the name exists already; that file then holds
   */
  commit(directory: string, content: string, durable: boolean): boolean {
    const bytes = Buffer.from(content);
    try {
      writeAll(this.#fd, bytes);
      fs.ftruncateSync(this.#fd, bytes.length);
      if (durable) fs.fsyncSync(this.#fd);
      return this.#publish(path.join(directory, this.name), durable);
    } finally {
      this.abandon();
    }
  }

  /** Wait in another directory, so that everything of an attempt lies in one; where that fails, it waits on where it is. */
  moveTo(directory: string): void {
    const moved = path.join(directory, path.basename(this.#temporary));
    try {
      if (moved !== this.#temporary) fs.renameSync(this.#temporary, moved);
      this.#temporary = moved;
    } catch {
      // Committing works from anywhere on the file system.
    }
  }

  /** Give the room back. */
  abandon(): void {
    try {
      fs.closeSync(this.#fd);
    } catch {
      // Closed before.
    }
    fs.rmSync(this.#temporary, { force: true });
  }

  #publish(target: string, durable: boolean): boolean {
    try {
      fs.linkSync(this.#temporary, target);
    } catch (error) {
      if (isErrno(error, "EEXIST")) return false;
      if (!isErrno(error, "EPERM", "ENOTSUP", "ENOSYS", "EMLINK", "EOPNOTSUPP")) throw error;
      if (fs.existsSync(target)) return false;
      fs.renameSync(this.#temporary, target);
    }
    if (durable) fsyncDirectory(path.dirname(target));
    return true;
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at, bytes.length - at, at);
}
