import type { LogChunk, LogStream } from "../domain/log.ts";
import { jsonBytes } from "../domain/primitives.ts";
import { asked } from "./asked.ts";
import type { Place } from "./clusters.ts";

/** What text takes at least is not counted. */
const SMALL = 1_024;

/** Whether a piece of text that has so many bytes takes more than twice as many as JSON, as control characters do. */
const isLong = (text: string, limit: number): boolean => jsonBytes(text) > Math.max(SMALL, 2 * limit);

/** How many bytes of it to take instead. */
const shorter = (bytes: number, text: string, limit: number): number =>
  Math.max(1, Math.min(bytes >> 1, Math.floor((bytes * 2 * limit) / jsonBytes(text))));

/**
 * Read a piece of a log: at most `limit` bytes of it, and as JSON at most twice as many.
 *
 * @param offset the first byte; without it the piece is the end of the log
 * @throws RelayError as any operation
 */
export async function logPiece(
  { client, entry }: Pick<Place, "client" | "entry">,
  { jobId, stream, offset }: { readonly jobId: string; readonly stream: LogStream; readonly offset?: number | undefined },
  limit: number,
  signal: AbortSignal,
): Promise<LogChunk> {
  for (let bytes = limit; ; ) {
    const at = offset === undefined ? { tail: bytes } : { offset };
    const read = (bounded: AbortSignal) => client.log(jobId, stream, { ...at, limit: bytes, signal: bounded });
    const chunk = await asked(`the worker of ${entry.name}`, signal, read);
    if (bytes === 1 || !isLong(chunk.text, limit)) return chunk;
    bytes = shorter(bytes, chunk.text, limit);
  }
}

/**
 * The beginning of some bytes as text that takes, as JSON, at most twice `limit`.
 *
 * @param decode text of the first so many bytes, cut where a character ends; null where it is none
 */
export function textPiece<T extends { readonly text: string }>(
  count: number,
  limit: number,
  decode: (count: number) => T | null,
): T | null {
  for (let bytes = count; ; ) {
    const piece = decode(bytes);
    if (piece === null || bytes <= 1 || !isLong(piece.text, limit)) return piece;
    bytes = shorter(bytes, piece.text, limit);
  }
}
