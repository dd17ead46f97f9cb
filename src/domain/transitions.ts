import type { JobState } from "./job.ts";

/**
 * Every allowed change of a job's state, with what causes it. A change that is not listed is refused by the
 * store. `canceled` from leased or running needs the worker's acknowledgement that everything is stopped.
 */
export const JOB_TRANSITIONS: readonly { readonly from: JobState; readonly to: JobState; readonly cause: string }[] = [
  { from: "queued", to: "leased", cause: "claim" },
  { from: "queued", to: "succeeded", cause: "recorded with its result (input_ingest)" },
  { from: "queued", to: "canceled", cause: "cancel before any attempt" },
  { from: "queued", to: "failed", cause: "record cannot be run" },
  { from: "leased", to: "running", cause: "shim started the job" },
  { from: "leased", to: "queued", cause: "attempt voided before it started" },
  { from: "leased", to: "failed", cause: "attempt could not start" },
  { from: "leased", to: "canceled", cause: "cancel acknowledged" },
  { from: "running", to: "succeeded", cause: "attempt completed" },
  { from: "running", to: "failed", cause: "attempt failed" },
  { from: "running", to: "canceled", cause: "cancel acknowledged" },
  { from: "running", to: "queued", cause: "retry of a failed attempt" },
  { from: "leased", to: "succeeded", cause: "attempt completed before its start was recorded" },
];

const allowed = new Set(JOB_TRANSITIONS.map(({ from, to }) => `${from}>${to}`));

/** Whether the table has the change. */
export const canTransition = (from: JobState, to: JobState): boolean => allowed.has(`${from}>${to}`);

const TERMINAL: ReadonlySet<JobState> = new Set<JobState>(["succeeded", "failed", "canceled"]);

/** Whether a job in this state will never change again. */
export const isTerminal = (state: JobState): boolean => TERMINAL.has(state);
