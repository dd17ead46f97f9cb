import os from "node:os";
import type { Outcome } from "../../domain/job.ts";
import type { AttemptSpec } from "../spool-records.ts";

/** What made the attempt end: the first process by itself, the time limit, a cancel, or the end of the machine's session. */
export type Cause = "ended" | "timeout" | "canceled" | "terminated";

/** How the first process ended (wait(2)). */
export interface FirstExit {
  readonly code: number | null;
  readonly signal: string | null;
}

const RESIDUAL_MAX = 1_000;

/**
 * The outcome of an attempt whose job was started.
 *
 * @param setupFailed whether the cluster's setup text ended it before its program
 */
export function outcomeOf(
  cause: Cause,
  exit: FirstExit,
  spec: Pick<AttemptSpec, "timeout_seconds">,
  residual: readonly number[],
  setupFailed = false,
): Outcome {
  const { reason, message } = setupFailed && cause === "ended" ? setupVerdict(exit) : verdict(cause, exit, spec);
  return {
    reason,
    exit_code: exit.code,
    signal: exit.signal,
    message: residual.length === 0 ? message : `${message}; ${residual.length} of its processes could not be ended`,
    residual: residual.slice(0, RESIDUAL_MAX),
  };
}

const setupVerdict = ({ code, signal }: FirstExit): Pick<Outcome, "reason" | "message"> => ({
  reason: "env_setup_failed",
  message: `the cluster's setup text ended with ${signal ?? `code ${code}`}, and the program was not started`,
});

function verdict(cause: Cause, exit: FirstExit, spec: Pick<AttemptSpec, "timeout_seconds">): Pick<Outcome, "reason" | "message"> {
  switch (cause) {
    case "timeout":
      return { reason: "timeout", message: `ended after its time limit of ${spec.timeout_seconds} s` };
    case "canceled":
      return { reason: "canceled", message: "canceled" };
    case "terminated":
      return { reason: "signaled", message: "its shim was asked to end (by a scheduler, a shutdown, or an operator's TERM)" };
    case "ended":
      if (exit.signal !== null) return { reason: "signaled", message: `ended by ${exit.signal}` };
      if (exit.code === 0) return { reason: "completed", message: "exited with code 0" };
      return { reason: "exit_nonzero", message: `exited with code ${exit.code}` };
  }
}

/** What the kernel did to a job, as a clause. */
export const memoryKilled = (count: number): string =>
  `the kernel ended ${count === 1 ? "one" : count} of the job's processes because memory ran out`;

/** An outcome with what the kernel did besides: whoever goes on in spite of it may end well with half of a result. */
export const withMemoryKills = (outcome: Outcome, count: number): Outcome =>
  count === 0 || outcome.reason === "canceled" ? outcome : { ...outcome, message: `${outcome.message}; ${memoryKilled(count)}` };

/** The outcome of an attempt without a first process to tell of: it never started, or the shim failed. */
export function notStarted(reason: "spawn_failed" | "canceled" | "outcome_unknown", message: string): Outcome {
  return { reason, exit_code: null, signal: null, message: message.slice(0, 2_000), residual: [] };
}

/** The outcome of an attempt whose shim failed, with what may still run of it. */
export const shimFailed = (error: unknown, residual: readonly number[] = []): Outcome => ({
  ...notStarted("outcome_unknown", `the shim failed: ${String(error)}`),
  residual: residual.slice(0, RESIDUAL_MAX),
});

/** The exit code that says the same, as a shell's does (sh(1): 128 and the signal's number). */
export function codeOf({ reason, exit_code, signal }: Outcome): number {
  if (reason === "completed") return 0;
  if (exit_code !== null && exit_code !== 0) return exit_code;
  const number = signal === null ? undefined : os.constants.signals[signal as NodeJS.Signals];
  return number === undefined ? 1 : 128 + number;
}
