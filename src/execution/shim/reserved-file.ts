import fs from "node:fs";
import path from "node:path";
import { createFileExclusive, fsyncDirectory, isErrno, takeFreeName } from "../../lib/files/atomic-file.ts";
import { isThere } from "../../lib/files/file-system.ts";

/**
 * A file whose room is taken before it is needed, so that a disk that fills up meanwhile does not keep it from being written. The
 * content appears under its name as a whole; the name need not be known before, only lie on the same file system.
 */
export class ReservedFile {
  #temporary: string;
  readonly #fd: number;
  #open = true;
  #published = false;

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
   * Put the content under the file's name. When that throws, the room is still there and it can be done again; what succeeds gives
   * up what is left of it.
   *
   * @param directory where that is
   * @param durable whether it is flushed to the disk first
   * @returns false when the name exists already; that file then holds
   */
  commit(directory: string, content: string, durable: boolean): boolean {
    const bytes = Buffer.from(content);
    const target = path.join(directory, this.name);
    // It has its name already when only the flush of the directory failed before.
    if (!this.#published) {
      // All of it again, each time: after a failed flush, pages that are not on the disk may count as written (fsync(2)).
      writeAll(this.#fd, bytes);
      fs.ftruncateSync(this.#fd, bytes.length);
      if (durable) fs.fsyncSync(this.#fd);
      if (!this.#publish(target, content)) {
        this.abandon();
        return false;
      }
      this.#published = true;
    }
    if (durable) fsyncDirectory(directory);
    this.abandon();
    return true;
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
    // Once: the number may be that of another file by now.
    if (this.#open) {
      this.#open = false;
      fs.closeSync(this.#fd);
    }
    fs.rmSync(this.#temporary, { force: true });
  }

  #publish(target: string, content: string): boolean {
    let outcome: ReturnType<typeof takeFreeName>;
    try {
      outcome = takeFreeName(this.#temporary, target);
    } catch (error) {
      // Somebody removed the name that it waited under, and no other can be given to it (linkat(2)): the content goes into a file of its own.
      if (!isErrno(error, "ENOENT") || isThere(this.#temporary)) throw error;
      return createFileExclusive(target, content);
    }
    if (outcome !== "unsupported") return outcome === "taken";
    if (isThere(target)) return false;
    fs.renameSync(this.#temporary, target);
    return true;
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at, bytes.length - at, at);
}
