import type { Attempt } from "../../domain/attempt.ts";
import type { Job } from "../../domain/job.ts";
import type { ExitRecord } from "../../execution/spool-records.ts";
import type { Fence, Notice } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import type { EngineAttempt } from "./engines/engine.ts";
import type { ShimClaim } from "./lost-shim.ts";
import type { Patience } from "./patience.ts";

/** An attempt as whoever runs it sees it. */
export interface HostedAttempt {
  readonly context: WorkerContext;
  readonly job: Job;
  /** As it was when this worker came to it. */
  readonly attempt: Attempt;
  readonly fence: Fence;
  readonly directory: string;
  readonly mode: "new" | "recovered";
  readonly engine: EngineAttempt;
  readonly patience: Patience;
  /** Aborted when this worker lets go of the attempt. */
  readonly signal: AbortSignal;
  /** Whether somebody asked for the job's end. */
  canceling(): boolean;
  /** Have it looked at again at once. */
  ring(): void;
  /** Have it looked at whenever something in its directory changes. */
  watch(): void;
  /** Take in what its files have gained, so that nothing of it is missing from the job's log. */
  takeIn(): Promise<void>;
  /** An event that the attempt gets once. */
  notice(notice: Notice): Promise<void>;
}

/**
 * What one look before the start found. `over`: the attempt has ended in the store. `again`: something changed meanwhile. `waits`: it may still start.
 * `claimed`: a shim runs it, or ran it.
 */
export type Beginning =
  | { readonly kind: "over" | "again" | "waits" }
  | {
      readonly kind: "claimed";
      readonly claim: ShimClaim;
      /** Whether the queue knows already that it runs. */
      readonly recorded: boolean;
    };

export const OVER: Beginning = { kind: "over" };
export const AGAIN: Beginning = { kind: "again" };
export const WAITS: Beginning = { kind: "waits" };
export const claimed = (claim: ShimClaim, recorded = false): Beginning => ({ kind: "claimed", claim, recorded });

/**
 * Where an attempt runs: on the worker's host, or in an allocation of a scheduler. It knows who starts the shim there, whether that lives, how it is asked to
 * end, and what its silence means. What the shim leaves in the attempt's directory is read by AttemptRun, which is the same everywhere.
 */
export interface AttemptHost {
  /** One look before a shim has claimed the attempt. Repeated until it is `over` or `claimed`. */
  start(): Promise<Beginning>;
  /** No further look can find that out, for this cause. */
  cannotStart(cause: unknown): Promise<Beginning>;
  /** Whether a claim that was found is one whose shim goes on. */
  lives(claim: ShimClaim): boolean;
  /** One look after that: how the attempt ended, null while that is open, `over` where it has ended in the store without a record of its shim. */
  end(claim: ShimClaim): Promise<ExitRecord | "over" | null>;
  /**
   * Ask the shim to end the job. May be repeated.
   *
   * @param write false where cancel.json cannot be written
   */
  askToEnd(claim: ShimClaim, write: boolean): Promise<void> | void;
  /** Whether anything of the attempt may run; asked where its records are of a later version. */
  mayRun(): boolean;
  /** What keeps it from going on; null where nothing is seen to. */
  readonly obstacle: string | null;
  /** Whether an obstacle before the start goes into the job's history as a delay. */
  readonly tellsDelay: boolean;
  /** Why nothing could be started here, so that claiming on would not help; null where something could. */
  readonly launchFailure: string | null;
  /** A claim is known: let go of what was held for the start. */
  started(): void;
  /** Let go of everything; shim and job go on. */
  close(): void;
}
