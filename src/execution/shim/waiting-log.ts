import fs from "node:fs";
import path from "node:path";

/** A stream's log that is there before its attempt: making a file takes longer than giving it its name. */
export class WaitingLog {
  readonly #temporary: string;
  #fd: number | null;

  constructor(directory: string, name: string) {
    this.#temporary = path.join(directory, `.${name}.${process.pid}.tmp`);
    this.#fd = fs.openSync(this.#temporary, "wx", 0o600);
  }

  /** Give it its name. Returns the file, which is the caller's to close; null where that was done before, or cannot be done. */
  take(target: string): number | null {
    const fd = this.#fd;
    if (fd === null) return null;
    try {
      fs.renameSync(this.#temporary, target);
    } catch {
      return null;
    }
    this.#fd = null;
    return fd;
  }

  abandon(): void {
    if (this.#fd === null) return;
    fs.closeSync(this.#fd);
    this.#fd = null;
    fs.rmSync(this.#temporary, { force: true });
  }
}
