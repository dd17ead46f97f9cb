import fs from "node:fs";
import path from "node:path";
import type { Clock } from "../../lib/waiting/clock.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import { FILES } from "../spool-records.ts";

const MAX_BYTES = 64 * 1024;
const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
/** Not through a link that the job has put there, and without waiting for the reader of a pipe. */
const APPEND = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK;

/** Diagnostics of the shim: a bounded file, and never a reason to fail. */
export class ShimLog {
  #left = MAX_BYTES;

  constructor(
    /** The attempt's directory, as its holder names it. */
    private readonly place: string,
    private readonly clock: Clock,
  ) {}

  note(message: string): void {
    const line = `${timestamp(this.clock)} ${message}\n`;
    if (line.length > this.#left) return;
    this.#left -= line.length;
    try {
      const fd = fs.openSync(path.join(this.place, FILES.shimLog), APPEND, 0o600);
      try {
        fs.writeSync(fd, line);
      } finally {
        fs.closeSync(fd);
      }
    } catch {
      // A full disk, or a directory that is gone: there is nobody to tell.
    }
  }
}
