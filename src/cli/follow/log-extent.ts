import type { ClusterClient } from "../../api/client.ts";
import { RelayError } from "../../domain/errors.ts";
import type { LogStream } from "../../domain/log.ts";
import { bodyBytes } from "./body-bytes.ts";

/** Which part of a log is asked for. */
export interface LogPart {
  readonly stream: LogStream;
  /** Only what this attempt wrote. */
  readonly attempt: number | undefined;
  /** Begin at this byte of the job's log. */
  readonly offset: number | undefined;
  /** Begin this many bytes, or lines, before the end. */
  readonly tail: number | undefined;
  readonly lines: number | undefined;
}

/** Byte offsets in the job's log; without an end it goes as far as there is something. */
export interface Extent {
  readonly start: number;
  readonly end: number | null;
}

const PIECE_BYTES = 64 * 1024;
const LINE_FEED = 0x0a;

/**
 * Where a part of a log lies. Looked up once: the end moves while one looks.
 *
 * @param text whether what follows is decoded piece by piece, so that it is not to begin within a character
 * @throws RelayError not_found where there is no such attempt
 */
export async function extentOf(cluster: ClusterClient, jobId: string, part: LogPart, text: boolean): Promise<Extent> {
  const { start, end } =
    part.attempt === undefined ? { start: 0, end: null } : await attemptExtent(cluster, jobId, part.stream, part.attempt);
  if (part.tail === undefined && part.lines === undefined)
    return { start: Math.max(start, Math.min(part.offset ?? start, end ?? Number.POSITIVE_INFINITY)), end };
  const last = end ?? (await cluster.status(jobId)).logs.find((log) => log.stream === part.stream)?.size_bytes ?? 0;
  if (part.lines !== undefined) return { start: await lastLines(cluster, jobId, part.stream, start, last, part.lines), end };
  const from = Math.max(start, last - part.tail!);
  return { start: text && from > start && from < last ? from + (await continuation(cluster, jobId, part.stream, from)) : from, end };
}

async function attemptExtent(cluster: ClusterClient, jobId: string, stream: LogStream, attempt: number): Promise<Extent> {
  const [{ attempts }, segments] = await Promise.all([cluster.job(jobId), cluster.attemptLogs(jobId, attempt)]);
  const segment = segments.find((one) => one.stream === stream);
  if (segment === undefined) throw new RelayError("not_found", `attempt ${attempt} of ${jobId} has no ${stream}`);
  const growing = attempt === attempts && segment.capture === null;
  return { start: segment.base, end: growing ? null : segment.base + segment.length };
}

/** Bytes [from, to) of a log; fewer where it ends before. */
async function bytesOf(cluster: ClusterClient, jobId: string, stream: LogStream, from: number, to: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let left = to - from;
  for await (const bytes of bodyBytes(await cluster.logContent(jobId, stream, { offset: from }))) {
    pieces.push(bytes.subarray(0, left));
    left -= bytes.length;
    if (left <= 0) break;
  }
  return Buffer.concat(pieces);
}

/** How many bytes at an offset end a UTF-8 sequence that began before it (RFC 3629: at most three). */
async function continuation(cluster: ClusterClient, jobId: string, stream: LogStream, offset: number): Promise<number> {
  const bytes = await bytesOf(cluster, jobId, stream, offset, offset + 4);
  const at = bytes.findIndex((byte) => (byte & 0xc0) !== 0x80);
  // More of them in a row are no UTF-8.
  return at >= 0 ? at : bytes.length > 3 ? 0 : bytes.length;
}

/** Where the last so many lines of [start, end) begin, read piece by piece from the end. A line that has not ended counts as one. */
async function lastLines(
  cluster: ClusterClient,
  jobId: string,
  stream: LogStream,
  start: number,
  end: number,
  lines: number,
): Promise<number> {
  if (lines === 0) return end;
  let left = lines;
  for (let to = end; to > start; ) {
    const from = Math.max(start, to - PIECE_BYTES);
    const bytes = await bytesOf(cluster, jobId, stream, from, to);
    // The line feed at the very end ends the last line.
    for (
      let at = bytes.lastIndexOf(LINE_FEED, to === end ? bytes.length - 2 : undefined);
      at >= 0;
      at = bytes.lastIndexOf(LINE_FEED, at - 1)
    ) {
      left--;
      if (left === 0) return from + at + 1;
      if (at === 0) break;
    }
    to = from;
  }
  return start;
}
