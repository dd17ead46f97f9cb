import type { Clock } from "../../../src/lib/waiting/clock.ts";
import type { QueueStore } from "../../../src/queue/store.ts";

export interface BackendOptions {
  readonly clock: Clock;
  readonly activeJobsMax: number;
  readonly consumersMax: number;
  readonly leaseSeconds: number;
}

/** One queue of a backend under test. It outlives the stores that are opened on it. */
export interface Backend {
  /** Open the queue. Called again after the store before was closed, as a new process would. */
  open(options: BackendOptions): Promise<QueueStore>;
  /** Make a job's record unreadable behind the back of the store, which is closed. */
  spoil(jobId: string): Promise<void>;
  /** Remove the queue and all it has left. Its store is closed. */
  dispose(): Promise<void>;
}

/** Makes an empty queue. */
export type BackendFactory = () => Promise<Backend>;
