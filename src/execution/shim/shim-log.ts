import fs from "node:fs";
import path from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { timestamp } from "../../lib/clock.ts";
import { FILES } from "../spool-records.ts";

const MAX_BYTES = 64 * 1024;

/** Diagnostics of the shim: a bounded file, and never a reason to fail. */
export class ShimLog {
  #left = MAX_BYTES;

  constructor(
    private readonly attemptDir: string,
    private readonly clock: Clock,
  ) {}

  note(message: string): void {
    const line = `${timestamp(this.clock)} ${message}\n`;
    if (line.length > this.#left) return;
    this.#left -= line.length;
    try {
      fs.appendFileSync(path.join(this.attemptDir, FILES.shimLog), line, { mode: 0o600 });
    } catch {
      // A full disk, or a directory that is gone: there is nobody to tell.
    }
  }
}
