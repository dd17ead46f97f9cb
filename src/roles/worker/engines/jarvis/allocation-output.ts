import fs from "node:fs";
import path from "node:path";
import { LOG_STREAMS, type LogStream } from "../../../../domain/log.ts";
import { hashFile } from "../../../../execution/file-hash.ts";
import { holdAttempt, openAttemptFile } from "../../../../execution/own-place.ts";
import { type ExitRecord, type ExitStream, logFile, type OutputQuota } from "../../../../execution/spool-records.ts";
import { isErrno } from "../../../../lib/files/atomic-file.ts";
import { openRegular } from "../../../../lib/files/regular-file.ts";
import { completeUtf8Length } from "../../../../lib/text/utf8.ts";

/** Bytes of a stream that one look brings. */
const LOOK_MAX_BYTES = 1024 * 1024;
const APPEND = fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;

export interface AllocationOutputAround {
  /** The attempt's. */
  readonly directory: string;
  /** Files that the scheduler writes the run's output to, by stream; null for one that is the pipeline's own affair. */
  readonly sources: Readonly<Record<LogStream, string | null>>;
  /** The end of the submission, whose output stands before the run's. */
  readonly exit: ExitRecord;
  readonly quota: OutputQuota;
}

/**
 * Brings what a pipeline writes in its allocation into the attempt's own logs, behind what its submission has said there, within the attempt's quota. How far it
 * has come is the length of the log, so that nothing is missed or doubled whenever the worker dies.
 */
export class AllocationOutput {
  /** Streams of which more was there than is kept, and why. */
  readonly #cut = new Map<LogStream, NonNullable<ExitStream["truncated"]>>();

  constructor(private readonly around: AllocationOutputAround) {}

  /**
   * One look.
   *
   * @param last the run has ended: the beginning of a UTF-8 sequence is no longer waited for
   * @returns whether something was brought
   */
  take(last: boolean): boolean {
    return LOG_STREAMS.map((stream) => this.#tolerant(stream, last)).includes(true);
  }

  /** What became of the output of both, byte for byte. */
  async streams(): Promise<ExitRecord["streams"]> {
    return { stdout: await this.#stream("stdout"), stderr: await this.#stream("stderr") };
  }

  /** What cannot be read or written keeps the run's end from nobody. */
  #tolerant(stream: LogStream, last: boolean): boolean {
    try {
      return this.#take(stream, last);
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
      if (isErrno(error, "ENOSPC", "EDQUOT")) this.#cut.set(stream, "disk_full");
      return false;
    }
  }

  #take(stream: LogStream, last: boolean): boolean {
    const source = this.around.sources[stream];
    const own = this.around.exit.streams[stream];
    // One that was cut keeps nothing any more.
    if (source === null || own.truncated !== null) return false;
    const opened = openRegular(source);
    if (typeof opened === "string") return false;
    const { fd, size } = opened;
    try {
      const log = openLog(this.around.directory, stream);
      if (log === null) return false;
      try {
        const from = log.size - own.kept;
        const wanted = Math.min(size - from, LOOK_MAX_BYTES);
        if (from < 0 || wanted <= 0) return false;
        const { room, why } = this.#room(stream, log.size);
        const bytes = Buffer.alloc(Math.min(wanted, room));
        const read = bytes.subarray(0, fs.readSync(fd, bytes, 0, bytes.length, from));
        const ends = last && from + read.length === size;
        const whole = read.subarray(0, ends ? read.length : completeUtf8Length(read));
        if (room < wanted) this.#cut.set(stream, why);
        for (let at = 0; at < whole.length; ) at += fs.writeSync(log.fd, whole, at);
        return whole.length > 0;
      } finally {
        fs.closeSync(log.fd);
      }
    } finally {
      fs.closeSync(fd);
    }
  }

  /** Bytes that a stream may still keep, and what bounds them. */
  #room(stream: LogStream, size: number): { readonly room: number; readonly why: "stream_quota" | "job_quota" } {
    const { quota } = this.around;
    const other = stream === "stdout" ? "stderr" : "stdout";
    const ofStream = quota.stream_bytes - quota.used[stream] - size;
    const ofJob = quota.job_bytes - quota.used.stdout - quota.used.stderr - size - this.#logSize(other);
    return { room: Math.max(0, Math.min(ofStream, ofJob)), why: ofJob < ofStream ? "job_quota" : "stream_quota" };
  }

  #logSize(stream: LogStream): number {
    return sizeOf(path.join(this.around.directory, logFile(stream)));
  }

  async #stream(stream: LogStream): Promise<ExitStream> {
    const own = this.around.exit.streams[stream];
    const source = this.around.sources[stream];
    const kept = this.#logSize(stream);
    const there = source === null ? 0 : sizeOf(source);
    if (there === 0 || kept < own.kept) return own;
    const missing = own.kept + there - kept;
    // Of what was not brought, though nothing forbade it, nobody knows how much it is.
    const truncated = own.truncated ?? (missing > 0 ? (this.#cut.get(stream) ?? null) : null);
    const dropped = own.dropped + (truncated === null ? 0 : Math.max(0, missing));
    const complete = own.complete && (truncated !== null || missing === 0);
    const sha256 = await digestOf(path.join(this.around.directory, logFile(stream)), kept);
    return { observed: kept + dropped, kept, dropped, truncated, complete, sha256 };
  }
}

const sizeOf = (file: string): number => {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false });
  return stat?.isFile() === true ? stat.size : 0;
};

/** Null where something else has the place of the attempt's directory or log. */
function openLog(directory: string, stream: LogStream): { readonly fd: number; readonly size: number } | null {
  try {
    using place = holdAttempt(directory);
    const fd = fs.openSync(path.join(place.path, logFile(stream)), APPEND, 0o600);
    const stat = fs.fstatSync(fd);
    if (stat.isFile()) return { fd, size: stat.size };
    fs.closeSync(fd);
    return null;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "ELOOP", "ENXIO", "EISDIR")) return null;
    throw error;
  }
}

async function digestOf(file: string, limit: number): Promise<string | null> {
  const handle = await openAttemptFile(file);
  if (typeof handle === "string") return null;
  try {
    return (await hashFile(handle, { limit })).sha256;
  } finally {
    await handle.close();
  }
}
