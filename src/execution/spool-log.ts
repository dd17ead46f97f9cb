import type { LogSegment, LogStream } from "../domain/log.ts";

/** One stream of a job's log: the output of its attempts, one after the other, addressed by byte offsets that never restart. */
export interface SpoolLog {
  /** The job's directory in the spool. */
  readonly directory: string;
  readonly stream: LogStream;
  /** Segments of this stream, in the order of attempts. A segment without capture is live: it reaches to the end of its file. */
  readonly segments: readonly LogSegment[];
}

/** Bytes that the log holds now: the offset that the next byte will have. */
export declare function logSize(log: SpoolLog): Promise<number>;

/**
 * Bytes from `offset` on, at most `limit`; fewer only at the end of what there is now.
 *
 * @throws RelayError log_not_found when bytes that were recorded are no longer there
 */
export declare function readLogBytes(log: SpoolLog, offset: number, limit: number): Promise<Uint8Array>;

/** A piece of a log as text; see LogChunk in the domain. */
export interface LogText {
  readonly offset: number;
  readonly next_offset: number;
  readonly text: string;
}

/** Text from `offset` on: at most `limit` bytes, cut between UTF-8 sequences, at least one sequence where there is one. */
export declare function readLogText(log: SpoolLog, offset: number, limit: number): Promise<LogText>;

/** The last `bytes` of the log as text, beginning between two UTF-8 sequences. */
export declare function tailLogText(log: SpoolLog, bytes: number): Promise<LogText>;
