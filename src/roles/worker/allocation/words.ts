import fs from "node:fs";
import path from "node:path";
import type { Outcome } from "../../../domain/job.ts";
import { hasEnded, type SchedulerStatus } from "../../../domain/scheduler.ts";
import { inAttempt } from "../../../execution/own-place.ts";
import { type ExitRecord, FILES } from "../../../execution/spool-records.ts";
import { openRegular } from "../../../lib/files/regular-file.ts";

const LOG_MAX_BYTES = 64 * 1024;
const LOG_WORDS_MAX = 1_000;

/** What a scheduler says of a job, in part of a sentence: its own word, why, and where. */
export function saidOf({ scheduler, scheduler_job_id, raw_state, phase, reason, nodes, exit_code }: SchedulerStatus): string {
  const why = reason === null || reason === "None" ? "" : ` (${reason})`;
  // Before it has any, this is how many it wants.
  const where = nodes === null || /^\d+$/.test(nodes) ? "" : ` on ${nodes}`;
  const code = exit_code === null || exit_code === 0 ? "" : `, exit code ${exit_code}`;
  return `${scheduler} says of ${scheduler_job_id}: ${raw_state ?? phase}${why}${where}${code}`;
}

/** What is in the way of an attempt whose shim's record has not been seen although the scheduler's job has ended. */
export const awaitedRecord = (status: SchedulerStatus): string => `${saidOf(status)}; the record of its shim is waited for`;

/**
 * Why a scheduler ended a job: for its time limit, or because somebody cancelled it there; null where it says neither.
 *
 * @param limitSeconds the time limit that was asked for
 */
export function endedFor(status: SchedulerStatus | null, limitSeconds: number | null): "timeout" | "canceled" | null {
  if (status === null || !hasEnded(status.phase)) return null;
  if (status.phase === "canceled") return "canceled";
  const { scheduler, raw_state, elapsed_seconds } = status;
  if (TIME_LIMITS[scheduler].test(raw_state ?? "")) return "timeout";
  const passed = limitSeconds !== null && elapsed_seconds !== null && elapsed_seconds >= limitSeconds;
  return scheduler === "gridengine" && passed && ANY_LIMIT.test(raw_state ?? "") ? "timeout" : null;
}

/** A failure of accounting(5) that means that some limit was enforced: of time or of memory. */
const ANY_LIMIT = /^failed 37\b/;
/** States of sacct(1), JOB STATE CODES, and failures of accounting(5), that mean that the time was over. */
const TIME_LIMITS = { slurm: /^(?:TIMEOUT|DEADLINE)\b/, gridengine: /^failed 44\b/ } as const;

/** Whether the scheduler may have to do with an end, or nobody else can say why it was. */
export const mayBeTheirs = (exit: ExitRecord): boolean => isTheirs(exit) || exit.outcome.reason === "outcome_unknown";

const isTheirs = ({ outcome, asked_to_end }: ExitRecord): boolean => asked_to_end === true || isBySignal(outcome);

/**
 * By a signal, or with the code by which a shell says that a program of its was ended by one (a scheduler's TERM
 * goes to all processes of a job, in no order).
 */
const isBySignal = ({ reason, exit_code }: Outcome): boolean =>
  reason === "signaled" || (reason === "exit_nonzero" && exit_code !== null && SIGNALED_CODES.has(exit_code));

/** 128 and the number of TERM, KILL, XCPU, USR1 or USR2, which are what schedulers send. */
const SIGNALED_CODES: ReadonlySet<number> = new Set([143, 137, 152, 138, 140]);

/**
 * The outcome of an end with the scheduler's word on it.
 *
 * @param besides what it has written into its output file, as `besidesOf`
 */
export function explained(exit: ExitRecord, status: SchedulerStatus, limitSeconds: number | null, besides = ""): Outcome {
  const { outcome } = exit;
  const ended = isTheirs(exit) ? endedFor(status, limitSeconds) : null;
  // Somebody may have asked for its end without ending the allocation: then it has ended well.
  if (outcome.reason === "completed" && status.phase === "completed") return outcome;
  const why = ended ?? (outcome.reason === "completed" ? "signaled" : null);
  return {
    ...outcome,
    reason: why ?? outcome.reason,
    message: `${outcome.message}; ${saidOf(status)}${ended === null ? besides : ""}`.slice(0, 2_000),
  };
}

/** The outcome of an end after which the scheduler has the job in its queue once more: requeued by hand, or by the site for a preemption. */
export const queuedAgain = ({ outcome }: ExitRecord, status: SchedulerStatus): Outcome => ({
  ...outcome,
  message: `${outcome.message}; ${saidOf(status)}: it is queued there again, and runs nothing when it is started`.slice(0, 2_000),
});

/** What a scheduler says of an end in its output file besides its word (of memory that ran out, for example), as the end of a sentence. */
export function besidesOf(directory: string): string {
  const words = batchWords(directory);
  return words === null ? "" : `; its output file ends with: ${words}`;
}

/** The end of what the batch script said before it became the shim; null where it has said nothing. */
export function batchWords(directory: string): string | null {
  const text = inAttempt(directory, (place) => tailOf(path.join(place, FILES.schedulerLog)), null);
  const words = text?.trim() ?? "";
  return words === "" ? null : words.slice(-LOG_WORDS_MAX);
}

function tailOf(file: string): string | null {
  const opened = openRegular(file);
  if (typeof opened === "string") return null;
  try {
    const length = Math.min(opened.size, LOG_MAX_BYTES);
    const bytes = Buffer.alloc(length);
    const read = fs.readSync(opened.fd, bytes, 0, length, opened.size - length);
    return bytes.toString("utf8", 0, read);
  } finally {
    fs.closeSync(opened.fd);
  }
}

/** An end by no code of the job's own, or by what is known of it. */
export const endedAs = (reason: Outcome["reason"], message: string, exit_code: number | null = null): Outcome => ({
  ...{ reason, exit_code, signal: null, message: message.slice(0, 2_000), residual: [] },
});
