import * as v from "valibot";
import { Outcome } from "./job.ts";
import { Count, Id, Sequence, Timestamp, text } from "./primitives.ts";

/**
 * A process, named so that a recycled pid is never taken for it: pid and start time in clock ticks since boot
 * (proc_pid_stat(5), field 22), within one boot (/proc/sys/kernel/random/boot_id).
 */
export const ProcessIdentity = v.strictObject({
  pid: Sequence,
  start_time: Count,
  boot_id: text(64),
  hostname: text(255),
});
export type ProcessIdentity = v.InferOutput<typeof ProcessIdentity>;

/** claimed -> running -> ended, or claimed -> void when it was proven never to have started. */
export const ATTEMPT_STATES = ["claimed", "running", "ended", "void"] as const;
export const AttemptState = v.picklist(ATTEMPT_STATES);
export type AttemptState = v.InferOutput<typeof AttemptState>;

/** One try at running a job. */
export const Attempt = v.strictObject({
  job_id: Id,
  /** From 1 within the job; fences every write about the attempt. */
  attempt: Sequence,
  /** Changes as ATTEMPT_STATES says. */
  state: AttemptState,
  /** The shim; set when it has started. */
  shim: v.nullable(ProcessIdentity),
  /** The job's first process; set when it was started. */
  process: v.nullable(ProcessIdentity),
  claimed_at: Timestamp,
  /** When the job's first process started; null before. */
  started_at: v.nullable(Timestamp),
  /** When the attempt ended or was voided; null before. */
  ended_at: v.nullable(Timestamp),
  /** Set when it ended. */
  outcome: v.nullable(Outcome),
});
export type Attempt = v.InferOutput<typeof Attempt>;
