import type fs from "node:fs";
import path from "node:path";
import { DirectoryWatch } from "../lib/files/directory-watch.ts";
import { regularSize } from "../lib/files/regular-file.ts";
import { Bell } from "../lib/waiting/bell.ts";
import { ofAttemptFile, openAttemptFile } from "./own-place.ts";
import { type LogPiece, logPieces, type SpoolLog } from "./spool-log.ts";

export interface FollowOptions {
  /** First byte wanted; beyond the end, the follower waits. */
  readonly offset: number;
  /** Byte to stop before; null: go on until the job has ended. */
  readonly end?: number | null;
  /** The segments as the store has them now. Asked for again whenever the end of what is known is reached. */
  readonly segments: () => Promise<SpoolLog["segments"]>;
  /** True when the job has ended: no attempt will follow, and what the files hold is all. */
  readonly ended: () => Promise<boolean>;
  /** Have `wake` called after each commit about the job; returns the way to stop. Without it the poll interval notices. */
  readonly subscribe?: (wake: () => void) => () => void;
  readonly signal?: AbortSignal;
  readonly pollMs?: number;
}

const PIECE_BYTES = 64 * 1024;
const POLL_MS = 1_000;

/**
 * The bytes of a log as they come, until the job has ended and all were given, or the signal is aborted (which ends the
 * iteration without an error). It also ends before bytes that were recorded and are no longer there, since it could not say so between
 * bytes: readLogText says how many they are, and what follows them is followed from there. Pieces are at most 64 KiB and the caller's to
 * keep.
 */
export async function* followLog(log: Pick<SpoolLog, "directory" | "stream">, options: FollowOptions): AsyncGenerator<Uint8Array, void> {
  const { signal, segments, ended } = options;
  const bell = new Bell();
  const watch = new DirectoryWatch(() => bell.ring());
  const unsubscribe = options.subscribe?.(() => bell.ring());
  const onAbort = (): void => bell.ring();
  signal?.addEventListener("abort", onAbort);
  const file = new OpenPiece();
  let offset = options.offset;
  const stop = options.end ?? Number.POSITIVE_INFINITY;
  try {
    while (offset < stop && !signal?.aborted) {
      // Rings from here on are not missed; the order matters: ended first, then what the files hold.
      bell.reset();
      const over = await ended();
      const pieces = await logPieces({ ...log, segments: await segments() });
      const piece = pieces.find(({ end }) => end > offset);
      if (piece === undefined || piece.base > offset) {
        if (over) return;
        watch.move(path.dirname(pieces.at(-1)?.file ?? path.join(log.directory, ".")));
        // What came between the look and the watch is found by another look.
        if (grown(pieces.at(-1))) continue;
        await bell.wait(options.pollMs ?? POLL_MS);
        continue;
      }
      watch.move(path.dirname(piece.file));
      for (const end = Math.min(piece.end, stop); offset < end && !signal?.aborted; ) {
        const bytes = await file.read(piece, offset - piece.base, Math.min(PIECE_BYTES, end - offset));
        if (bytes === null) return;
        offset += bytes.length;
        yield bytes;
      }
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    unsubscribe?.();
    watch.close();
    await file.close();
  }
}

function grown(piece: LogPiece | undefined): boolean {
  if (piece?.live !== true) return false;
  const size = ofAttemptFile(piece.file, regularSize, "absent");
  return typeof size === "number" && size > piece.end - piece.base;
}

/** The file that was read last, kept open: a follower reads one file many times. */
class OpenPiece {
  #file: string | null = null;
  #handle: fs.promises.FileHandle | null = null;

  /** Null where the file has no bytes at this position. */
  async read(piece: LogPiece, position: number, length: number): Promise<Uint8Array | null> {
    if (this.#file !== piece.file) {
      await this.close();
      const handle = await openAttemptFile(piece.file);
      if (typeof handle === "string") return null;
      this.#handle = handle;
      this.#file = piece.file;
    }
    const bytes = Buffer.allocUnsafeSlow(length);
    const { bytesRead } = await this.#handle!.read(bytes, 0, length, position);
    return bytesRead === 0 ? null : bytes.subarray(0, bytesRead);
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    this.#file = null;
    await handle?.close();
  }
}
