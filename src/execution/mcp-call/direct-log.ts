import fs from "node:fs";
import type { LogStream, StreamCapture } from "../../domain/log.ts";
import type { OutputBudget } from "../shim/output-budget.ts";
import type { ExitStream } from "../spool-records.ts";

export interface DirectLogOptions {
  readonly stream: LogStream;
  /** The log; the caller closes it. */
  readonly fd: number;
  readonly budget: OutputBudget;
  /** Called once, when the first byte is dropped. */
  readonly onTruncated: (capture: StreamCapture) => void;
}

/** A stream of a job whose bytes its shim has at hand: bounded, counted and hashed as one that comes through a pipe is. */
export class DirectLog {
  #observed = 0;
  #kept = 0;
  #truncated: StreamCapture["truncated"] = null;
  #carry: Uint8Array = new Uint8Array(0);
  readonly #hash = new Bun.CryptoHasher("sha256");

  constructor(private readonly options: DirectLogOptions) {}

  take(bytes: Uint8Array): void {
    this.#observed += bytes.length;
    if (this.#truncated === null) this.#rule(this.#carry.length === 0 ? bytes : Buffer.concat([this.#carry, bytes]), false);
  }

  /** Nothing follows. Ends the digest: call it once. */
  conclude(): ExitStream {
    if (this.#truncated === null && this.#carry.length > 0) this.#rule(this.#carry, true);
    return { ...this.#capture(true), sha256: this.#hash.digest("hex") };
  }

  #rule(bytes: Uint8Array, last: boolean): void {
    const { budget, stream } = this.options;
    const { keep, carry, truncated } = budget.rule(stream, bytes, last);
    const whole = this.#write(bytes.subarray(0, keep));
    this.#carry = bytes.slice(keep, keep + carry);
    const reason = whole ? truncated : "disk_full";
    if (reason === null) return;
    this.#truncated = reason;
    budget.release(stream);
    this.options.onTruncated(this.#capture(false));
  }

  /** False when there is no room for all of it. */
  #write(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; ) {
      let count: number;
      try {
        count = fs.writeSync(this.options.fd, bytes, at, bytes.length - at, this.#kept);
      } catch {
        return false;
      }
      this.#hash.update(bytes.subarray(at, at + count));
      this.#kept += count;
      at += count;
    }
    return true;
  }

  #capture(complete: boolean): StreamCapture {
    return { observed: this.#observed, kept: this.#kept, dropped: this.#observed - this.#kept, truncated: this.#truncated, complete };
  }
}
