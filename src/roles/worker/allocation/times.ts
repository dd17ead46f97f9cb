/** How long is waited for what, in milliseconds (docs/schedulers.md). */
export interface AllocationTimes {
  /** Between the two looks for the marker of a submission that was refused, where nothing of it can start any more. */
  readonly refusedAgain: number;
  /** The same where a job that turns up late would run. */
  readonly unfencedAgain: number;
  /** For sources that do not answer, before a refusal is believed without them. */
  readonly refusedPatience: number;
  /** Between looks for a marker in doubt: at first, and at most. */
  readonly doubtFirst: number;
  readonly doubtMost: number;
  /** For records of a shim that a file server may show late, once the scheduler says that its job has ended. */
  readonly lag: number;
  /** Before a job that has not started, and that no source knows, is given up. */
  readonly vanished: number;
  /** For the scheduler's word on why a job was ended. */
  readonly why: number;
  /** Beyond the grace period, before the scheduler's own cancel follows a TERM. */
  readonly cancelMargin: number;
  /** Between cancels that do not help: at first, and at most. */
  readonly cancelFirst: number;
  readonly cancelMost: number;
}

export const ALLOCATION_TIMES: AllocationTimes = {
  refusedAgain: 4_000,
  unfencedAgain: 15_000,
  refusedPatience: 300_000,
  doubtFirst: 5_000,
  doubtMost: 60_000,
  lag: 60_000,
  vanished: 300_000,
  why: 30_000,
  cancelMargin: 10_000,
  cancelFirst: 5_000,
  cancelMost: 60_000,
};
