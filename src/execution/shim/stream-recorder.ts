import fs from "node:fs";
import type { LogStream, StreamCapture } from "../../domain/log.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { ExitStream } from "../spool-records.ts";
import type { OutputBudget } from "./output-budget.ts";

const WRITE_RETRY_MS = 250;

const READ_BYTES = 64 * 1024;
/** Room in front of the read bytes for those that the budget made wait: at most three. */
const CARRY_BYTES = 4;

export interface RecorderOptions {
  readonly stream: LogStream;
  /** Read end of the pipe that the job writes to. The recorder closes neither. */
  readonly pipe: number;
  readonly log: number;
  readonly budget: OutputBudget;
  readonly clock: Clock;
  /** Milliseconds for which a write that fails is tried again before the stream is cut. */
  readonly patienceMs: number;
  /** Called once, when the first byte is dropped. */
  readonly onTruncated: (capture: StreamCapture) => void;
  readonly onTrouble: (message: string) => void;
  readonly write?: (fd: number, bytes: Uint8Array, position: number) => Promise<number>;
}

/** Copies one stream of a job from its pipe to its log, byte for byte, counts and hashes. One buffer of 64 KiB, whatever comes. */
export class StreamRecorder {
  /** Resolves at the end of the pipe: every writer has closed it, and all that they wrote is in the log or counted as dropped; or after `stop`. Never rejects. */
  readonly finished: Promise<void>;
  #observed = 0;
  #kept = 0;
  #truncated: StreamCapture["truncated"] = null;
  /** Whether somebody else has cut the log: what it holds is not what was written to it. */
  #cut = false;
  #ended = false;
  #stopped = false;
  /** When the recorder began to wait for bytes; null while it works on some. */
  #waitingSince: number | null = null;
  readonly #hash = new Bun.CryptoHasher("sha256");
  readonly #buffer = Buffer.allocUnsafeSlow(CARRY_BYTES + READ_BYTES);

  constructor(private readonly options: RecorderOptions) {
    this.finished = this.#record().catch((error: unknown) => options.onTrouble(`${options.stream}: reading failed: ${String(error)}`));
  }

  /** Milliseconds for which nothing came; 0 while bytes are being written. */
  idleMs(): number {
    return this.#waitingSince === null ? 0 : this.options.clock.monotonic() - this.#waitingSince;
  }

  /** The accounting now. `complete` only once the pipe has ended. */
  capture(): StreamCapture {
    return {
      observed: this.#observed,
      kept: this.#kept,
      dropped: this.#observed - this.#kept,
      truncated: this.#truncated,
      complete: this.#ended,
    };
  }

  /** Take nothing more. Resolves when what was being written has been; what the pipe still gives is left alone and not counted. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#waitingSince === null) await this.finished;
  }

  /** The final accounting. Ends the digest: call it once, after the recorder has come to rest. */
  conclude(): ExitStream {
    const sha256 = this.#hash.digest("hex");
    return { ...this.capture(), sha256: this.#cut ? null : sha256 };
  }

  async #record(): Promise<void> {
    let carry = 0;
    while (!this.#stopped) {
      this.#waitingSince = this.options.clock.monotonic();
      const count = await readSome(this.options.pipe, this.#buffer, CARRY_BYTES);
      if (this.#stopped) return;
      this.#waitingSince = null;
      this.#observed += count;
      if (this.#truncated === null && carry + count > 0) {
        carry = await this.#take(this.#buffer.subarray(CARRY_BYTES - carry, CARRY_BYTES + count), count === 0);
      }
      if (count === 0) {
        this.#ended = true;
        return;
      }
    }
  }

  /** Write what may be kept. Returns how many bytes wait, moved in front of where the next ones are read to. */
  async #take(bytes: Buffer, last: boolean): Promise<number> {
    const { budget, stream } = this.options;
    const ruling = budget.rule(stream, bytes, last);
    const whole = await this.#write(bytes.subarray(0, ruling.keep));
    const reason = whole ? ruling.truncated : "disk_full";
    if (reason !== null) {
      this.#truncated = reason;
      budget.release(stream);
      this.options.onTruncated(this.capture());
      return 0;
    }
    bytes.copy(this.#buffer, CARRY_BYTES - ruling.carry, ruling.keep, ruling.keep + ruling.carry);
    return ruling.carry;
  }

  /** Append bytes to the log: behind those that were written before, also where these are gone from it. False when it could not be done in time; the job waits on its pipe until then. */
  async #write(bytes: Uint8Array): Promise<boolean> {
    const { log, clock, onTrouble, patienceMs } = this.options;
    const write = this.options.write ?? writeSome;
    let failingSince: number | null = null;
    for (let at = 0; at < bytes.length; ) {
      const rest = bytes.subarray(at);
      try {
        this.#noteCut();
        const count = await write(log, rest, this.#kept);
        this.#hash.update(rest.subarray(0, count));
        this.#kept += count;
        at += count;
        failingSince = null;
      } catch (error) {
        if (isErrno(error, "EINTR", "EAGAIN")) continue;
        const now = clock.monotonic();
        if (failingSince === null) onTrouble(`${this.options.stream}: write failed, trying again: ${String(error)}`);
        failingSince ??= now;
        if (now - failingSince >= patienceMs) return false;
        await Bun.sleep(WRITE_RETRY_MS);
      }
    }
    return true;
  }

  #noteCut(): void {
    const { log, stream, onTrouble } = this.options;
    if (this.#cut || fs.fstatSync(log).size >= this.#kept) return;
    this.#cut = true;
    onTrouble(`${stream}: somebody has cut the log`);
  }
}

/** read(2) into the buffer from `at` on; 0 at the end of the pipe. */
function readSome(fd: number, buffer: Buffer, at: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.read(fd, buffer, at, buffer.length - at, null, (error, count) => {
      if (error === null) resolve(count);
      else if (isErrno(error, "EINTR", "EAGAIN")) resolve(readSome(fd, buffer, at));
      else reject(error);
    });
  });
}

/** pwrite(2). */
function writeSome(fd: number, bytes: Uint8Array, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.write(fd, bytes, 0, bytes.length, position, (error, count) => (error === null ? resolve(count) : reject(error)));
  });
}
