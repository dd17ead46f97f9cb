import type { LogStream } from "../../domain/log.ts";
import { completeUtf8Length } from "../../lib/text/utf8.ts";
import type { OutputQuota } from "../spool-records.ts";

export type QuotaReason = "stream_quota" | "job_quota";

/** What is to be done with the bytes at hand: the first `keep` are written, the last `carry` wait for what follows, the rest is dropped. */
export interface Ruling {
  readonly keep: number;
  readonly carry: number;
  /** Why bytes are dropped; null when none are. From then on the stream keeps nothing. */
  readonly truncated: QuotaReason | null;
}

const other = (stream: LogStream): LogStream => (stream === "stdout" ? "stderr" : "stdout");

/**
 * Divides what a job may still keep between its two streams, so that neither is ever cut inside a UTF-8 sequence: where a
 * piece ends inside one, room for the rest of it is set aside, and where there is none, the begun sequence waits unwritten.
 */
export class OutputBudget {
  readonly #left: Record<LogStream, number>;
  #jobLeft: number;
  /** Bytes that the last, begun sequence of a stream still lacks. */
  readonly #lacking: Record<LogStream, number> = { stdout: 0, stderr: 0 };

  constructor(quota: OutputQuota) {
    this.#left = {
      stdout: Math.max(0, quota.stream_bytes - quota.used.stdout),
      stderr: Math.max(0, quota.stream_bytes - quota.used.stderr),
    };
    this.#jobLeft = Math.max(0, quota.job_bytes - quota.used.stdout - quota.used.stderr);
  }

  /**
   * Rule on the next bytes of a stream (those that it carried come first), and charge what is kept.
   *
   * @param last nothing follows
   */
  rule(stream: LogStream, bytes: Uint8Array, last: boolean): Ruling {
    const jobLeft = this.#jobLeft - this.#lacking[other(stream)];
    const limit = Math.max(0, Math.min(this.#left[stream], jobLeft));
    if (bytes.length > limit) {
      const keep = completeUtf8Length(bytes.subarray(0, limit));
      this.#charge(stream, keep, 0);
      return { keep, carry: 0, truncated: jobLeft < this.#left[stream] ? "job_quota" : "stream_quota" };
    }
    const lacking = last ? 0 : lackingAfter(bytes, this.#lacking[stream]);
    if (bytes.length + lacking <= limit) {
      this.#charge(stream, bytes.length, lacking);
      return { keep: bytes.length, carry: 0, truncated: null };
    }
    const keep = completeUtf8Length(bytes);
    this.#charge(stream, keep, 0);
    return { keep, carry: bytes.length - keep, truncated: null };
  }

  /** The stream keeps nothing more: what it had set aside is the other's. */
  release(stream: LogStream): void {
    this.#lacking[stream] = 0;
  }

  #charge(stream: LogStream, bytes: number, lacking: number): void {
    this.#left[stream] -= bytes;
    this.#jobLeft -= bytes;
    this.#lacking[stream] = lacking;
  }
}

/** Bytes that the sequence at the end lacks, when `before` of an earlier one were lacking in front of these bytes. */
function lackingAfter(bytes: Uint8Array, before: number): number {
  if (bytes.length < before && bytes.every((byte) => (byte & 0xc0) === 0x80)) return before - bytes.length;
  const complete = completeUtf8Length(bytes);
  if (complete === bytes.length) return 0;
  const lead = bytes[complete]!;
  return (lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2) - (bytes.length - complete);
}
