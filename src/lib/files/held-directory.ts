import fs from "node:fs";
import { isErrno } from "./atomic-file.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = fs.constants;

/**
 * An open directory. What is done below its path happens in the directory that was opened, whatever has taken its name meanwhile. Linux
 * only (proc_pid_fd(5)).
 */
export class HeldDirectory implements Disposable {
  /** Good until the directory is let go of; not for other processes. */
  readonly path: string;
  readonly #fd: number;

  /**
   * Open `root`, which may be reached through symbolic links, and below it one name after the other, following none.
   *
   * @throws the system's error: ENOENT, or ENOTDIR for whatever is no directory, links included (open(2))
   */
  constructor(root: string, ...names: readonly string[]) {
    let fd = fs.openSync(root, O_RDONLY | O_DIRECTORY);
    for (const name of names) {
      try {
        const next = fs.openSync(`/proc/self/fd/${fd}/${name}`, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        fs.closeSync(fd);
        fd = next;
      } catch (error) {
        fs.closeSync(fd);
        throw error;
      }
    }
    this.#fd = fd;
    this.path = `/proc/self/fd/${fd}`;
  }

  /** Whether a path, without following a link in its place, still leads to this directory. @throws the system's error when that cannot be seen */
  isAt(path: string): boolean {
    const held = fs.fstatSync(this.#fd, { bigint: true });
    try {
      const found = fs.lstatSync(path, { bigint: true });
      return found.dev === held.dev && found.ino === held.ino;
    } catch (error) {
      if (isErrno(error, "ENOENT", "ENOTDIR")) return false;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    fs.closeSync(this.#fd);
  }
}
