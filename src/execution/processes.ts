import type { Clock } from "../lib/clock.ts";
import type { Identity } from "../lib/process-identity.ts";

/** How a job's processes are recognized. */
export interface JobProcesses {
  /** Value of CLIO_RELAY_ATTEMPT; attemptMark() of spool-records.ts. */
  readonly mark: string;
  /** The job's first process; null when it is not known. */
  readonly process: Identity | null;
  /** The cgroup of start.json; null where there is none. */
  readonly cgroup: string | null;
}

/** Process ids that are proven to belong to the job and run now. */
export declare function findJob(job: JobProcesses): number[];

/**
 * End every process of a job whose shim is gone: TERM, after the grace period KILL, for at most 30 s more.
 *
 * @returns the process ids that could not be ended, or not be proven to be the job's
 */
export declare function endJob(job: JobProcesses, graceMs: number, clock?: Clock): Promise<number[]>;
