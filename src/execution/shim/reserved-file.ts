import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory, isErrno } from "../../lib/atomic-file.ts";

/**
 * A file whose room is taken before it is needed, so that a disk that fills up meanwhile does not keep it from being written. The
 * content appears under the name as a whole.
 */
export class ReservedFile {
  readonly #temporary: string;
  readonly #target: string;
  readonly #fd: number;

  constructor(
    private readonly directory: string,
    name: string,
    bytes: number,
  ) {
    this.#target = path.join(directory, name);
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
   * @param durable whether it is flushed to the disk first
   * @returns false when the name exists already; that file then holds
   */
  commit(content: string, durable: boolean): boolean {
    const bytes = Buffer.from(content);
    try {
      writeAll(this.#fd, bytes);
      fs.ftruncateSync(this.#fd, bytes.length);
      if (durable) fs.fsyncSync(this.#fd);
      return this.#publish(durable);
    } finally {
      this.abandon();
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

  #publish(durable: boolean): boolean {
    try {
      fs.linkSync(this.#temporary, this.#target);
    } catch (error) {
      if (isErrno(error, "EEXIST")) return false;
      if (!isErrno(error, "EPERM", "ENOTSUP", "ENOSYS", "EMLINK", "EOPNOTSUPP")) throw error;
      if (fs.existsSync(this.#target)) return false;
      fs.renameSync(this.#temporary, this.#target);
    }
    if (durable) fsyncDirectory(this.directory);
    return true;
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at, bytes.length - at, at);
}
