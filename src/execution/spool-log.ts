import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import type { LogSegment, LogStream } from "../domain/log.ts";
import { readUpTo, regularSize } from "../lib/files/regular-file.ts";
import { completeUtf8Length } from "../lib/text/utf8.ts";
import { attemptDirectory } from "./attempt-dir.ts";
import { ofAttemptFile, openAttemptFile } from "./own-place.ts";
import { logFile } from "./spool-records.ts";

/** One stream of a job's log: the output of its attempts, one after the other, addressed by byte offsets that never restart. */
export interface SpoolLog {
  /** The job's directory in the spool. */
  readonly directory: string;
  readonly stream: LogStream;
  /** Segments of this stream, in the order of attempts. A segment without capture is live: it reaches to the end of its file. */
  readonly segments: readonly LogSegment[];
}

/** Where a piece of a log lies. */
export interface LogPiece {
  readonly file: string;
  /** Offset in the job's log of the file's first byte, and of the first byte after it. */
  readonly base: number;
  readonly end: number;
  /** Whether more bytes may still come. */
  readonly live: boolean;
}

/** The log's pieces as they are now. */
export async function logPieces(log: SpoolLog): Promise<LogPiece[]> {
  const pieces: LogPiece[] = [];
  for (const segment of log.segments) {
    if (segment.stream !== log.stream) continue;
    const file = path.join(attemptDirectory(log.directory, segment.attempt), logFile(log.stream));
    const live = segment.capture === null;
    // Bytes that were recorded keep their place, also when a crash of the machine took them: what follows does not move up.
    const length = Math.max(segment.length, segment.capture?.kept ?? sizeOf(file));
    pieces.push({ file, base: segment.base, end: segment.base + length, live });
  }
  return pieces;
}

function sizeOf(file: string): number {
  const size = ofAttemptFile(file, regularSize, "absent");
  return typeof size === "number" ? size : 0;
}

/** Bytes that the log holds now: the offset that the next byte will have. */
export async function logSize(log: SpoolLog): Promise<number> {
  return (await logPieces(log)).at(-1)?.end ?? 0;
}

/**
 * Bytes from `offset` on, at most `limit`; fewer at the end of what there is now, and where the next ones are no longer there.
 *
 * @throws RelayError log_not_found when the byte at `offset` was recorded and is no longer there
 */
export async function readLogBytes(log: SpoolLog, offset: number, limit: number): Promise<Uint8Array> {
  const { bytes, missing } = await readPieces(await logPieces(log), offset, limit);
  if (bytes.length === 0 && missing > 0) throw lost(offset, missing);
  return bytes;
}

/**
 * Make sure that bytes [from, to) are there, before somebody is promised them.
 *
 * @throws RelayError log_not_found with where the first ones that are lost begin, and where what follows them does
 */
export async function checkPresent(log: SpoolLog, from: number, to: number): Promise<void> {
  for (const { file, base, end } of await logPieces(log)) {
    const present = base + sizeOf(file);
    if (Math.min(end, to) > Math.max(base, from, present)) {
      const offset = Math.max(present, from);
      throw lost(offset, end - offset);
    }
  }
}

interface Found {
  readonly bytes: Uint8Array;
  /** Bytes right behind them that were recorded and are no longer there; what follows those has kept its place. */
  readonly missing: number;
}

async function readPieces(pieces: readonly LogPiece[], offset: number, limit: number): Promise<Found> {
  const end = Math.min(offset + limit, pieces.at(-1)?.end ?? 0);
  if (end <= offset) return { bytes: new Uint8Array(0), missing: 0 };
  const bytes = Buffer.alloc(end - offset);
  for (const piece of pieces) {
    const from = Math.max(offset, piece.base);
    const to = Math.min(end, piece.end);
    if (from >= to) continue;
    const last = from + (await fill(bytes.subarray(from - offset, to - offset), piece, from - piece.base));
    if (last < to) return { bytes: bytes.subarray(0, last - offset), missing: piece.end - last };
  }
  return { bytes, missing: 0 };
}

/** How many bytes there are. */
async function fill(bytes: Buffer, piece: LogPiece, position: number): Promise<number> {
  const handle = await openAttemptFile(piece.file);
  if (typeof handle === "string") return 0;
  try {
    return await readUpTo(handle, bytes, position);
  } finally {
    await handle.close();
  }
}

/** Bytes were recorded, and the file does not have them: it was removed or cut, or they were lost in a crash of the machine. */
const lost = (offset: number, missing: number): RelayError =>
  new RelayError("log_not_found", `${missing} bytes from byte ${offset} on are no longer there`, { offset, next_offset: offset + missing });

/** A piece of a log as text; see LogChunk in the domain. */
export interface LogText {
  readonly offset: number;
  readonly next_offset: number;
  readonly text: string;
  /** Bytes of [offset, next_offset) that are no longer there; then it is all of them, and `text` is empty. */
  readonly missing_bytes: number;
}

const UTF8_MAX_BYTES = 4;
const decode = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/**
 * Text from `offset` on: at most `limit` bytes, cut between UTF-8 sequences, but at least one whole sequence where there is one. Bytes
 * that are not UTF-8 become U+FFFD. A sequence that a live log has begun and not ended yet is left for the next call. Where the bytes at
 * `offset` are no longer there, it is passed over them, without a text.
 */
export async function readLogText(log: SpoolLog, offset: number, limit: number): Promise<LogText> {
  const pieces = await logPieces(log);
  // What a small limit may not cut in two is read whole.
  const { bytes, missing } = await readPieces(pieces, offset, Math.max(limit, UTF8_MAX_BYTES));
  if (bytes.length === 0 && missing > 0) return { offset, next_offset: offset + missing, text: "", missing_bytes: missing };
  const last = pieces.at(-1);
  const atEnd = last === undefined || offset + bytes.length >= last.end;
  const length = cut(bytes, limit, missing > 0 || (atEnd && last?.live !== true));
  return { offset, next_offset: offset + length, text: decode(bytes.subarray(0, length)), missing_bytes: 0 };
}

/** How many of the bytes to give; `final`: nothing follows them. */
function cut(bytes: Uint8Array, limit: number, final: boolean): number {
  if (bytes.length <= limit) return final ? bytes.length : completeUtf8Length(bytes);
  const within = completeUtf8Length(bytes.subarray(0, limit));
  if (within > 0 || limit === 0) return within;
  // The first sequence is longer than the limit: give it whole, or what there is of it when it never ends.
  for (let length = limit + 1; length <= bytes.length; length++) {
    const complete = completeUtf8Length(bytes.subarray(0, length));
    if (complete > 0) return complete;
  }
  return final ? bytes.length : 0;
}

/** The last `bytes` of the log as text, beginning and ending between two UTF-8 sequences. */
export async function tailLogText(log: SpoolLog, bytes: number): Promise<LogText> {
  const size = await logSize(log);
  const from = Math.max(0, size - bytes);
  const head = (await readPieces(await logPieces(log), from, UTF8_MAX_BYTES)).bytes;
  let skip = 0;
  if (from > 0) while (skip < Math.min(3, head.length) && (head[skip]! & 0xc0) === 0x80) skip++;
  // More than three continuation bytes in a row are no UTF-8, and nothing is skipped then.
  if (skip === 3 && ((head[3] ?? 0) & 0xc0) === 0x80) skip = 0;
  return readLogText(log, from + skip, Math.max(0, size - from - skip));
}
