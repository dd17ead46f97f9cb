import type { SpoolLog } from "./spool-log.ts";

export interface FollowOptions {
  /** First byte wanted; beyond the end, the follower waits. */
  readonly offset: number;
  /** The segments as the store has them now. Asked for again whenever the end of what is known is reached. */
  readonly segments: () => Promise<SpoolLog["segments"]>;
  /** True when the job has ended: no attempt will follow, and what the files hold is all. */
  readonly ended: () => Promise<boolean>;
  /** Have `wake` called after each commit about the job; returns the way to stop. Without it the poll interval notices. */
  readonly subscribe?: (wake: () => void) => () => void;
  readonly signal?: AbortSignal;
  readonly pollMs?: number;
}

/**
 * The bytes of a log as they come, until the job has ended and all were given, or the signal is aborted (which ends the
 * iteration without an error). Pieces are at most 64 KiB and the caller's to keep.
 */
export declare function followLog(log: Pick<SpoolLog, "directory" | "stream">, options: FollowOptions): AsyncGenerator<Uint8Array, void>;
