import { isOver, processStat } from "../../lib/system/process-identity.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { within } from "../../lib/waiting/within.ts";
import { type EndedProcesses, endProcesses } from "../end-processes.ts";
import type { AttemptSpec } from "../spool-records.ts";
import { JobProcesses } from "./job-processes.ts";
import type { Cause, FirstExit } from "./outcome.ts";
import { residentBytes, shrinkResidentSet } from "./resident-set.ts";
import type { ShimLog } from "./shim-log.ts";
import type { StreamRecorder } from "./stream-recorder.ts";
import type { TermSignal } from "./term-signal.ts";

/** How long what the first process leaves may take to end by itself: a `tee` that still empties its pipe, for example. */
const SETTLE_MS = 1_000;
/** How long a pipe may stay silent, once no process of the job is left, before the shim stops waiting for its end. */
const DRAIN_IDLE_MS = 3_000;
/** How long the shim reads on, once no process of the job is left, whatever comes. The job's own last bytes lie in the pipe by then. */
const DRAIN_MS = 30_000;
/** When the shim first gives up memory that it does not need to wait; later it looks now and then whether a flood of output took it again. */
const SHRINK_AFTER_MS = 1_000;
const SHRINK_EVERY_MS = 30_000;
const SHRINK_ABOVE_BYTES = 30 * 1024 * 1024;
const REAP_EVERY_MS = 2_000;
/** The longest that one timer may run (setTimeout takes 2^31 - 1 ms). */
const TIMER_MAX_MS = 86_400_000;

export interface Supervision {
  readonly child: Bun.Subprocess;
  readonly recorders: readonly StreamRecorder[];
  readonly spec: Pick<AttemptSpec, "timeout_seconds" | "cancel_grace_seconds" | "first_alone_seconds">;
  readonly clock: Clock;
  readonly term: TermSignal;
  /** Whether TERM means cancel. */
  readonly isCancel: () => boolean;
  readonly log: Pick<ShimLog, "note">;
  /** Milliseconds for which the pipes are read once no process of the job is left. 30 s. */
  readonly drainMs?: number | undefined;
}

export interface End {
  readonly cause: Cause;
  readonly exit: FirstExit;
  /** Processes that had to be ended, the first one not counted. */
  readonly leftover: number;
  readonly residual: readonly number[];
}

/** See a started job to its end: until no process of it runs, and its output has been taken in. */
export async function superviseJob(job: Supervision): Promise<End> {
  const { child, clock, spec } = job;
  const processes = new JobProcesses(child.pid);
  const stopReaping = reapWhileRunning(processes);
  const stopShrinking = keepSmall(job.log);
  try {
    const cause = await causeOfEnd(job);
    if (cause === "ended") await settle(processes, clock);
    else await firstAlone(child, spec.first_alone_seconds ?? 0);
    const ended = await endProcesses({ find: () => processes.running(), graceMs: spec.cancel_grace_seconds * 1_000, clock });
    const firstIsLeft = ended.residual.includes(child.pid);
    if (!firstIsLeft) await child.exited;
    await drain(job);
    const signaled = new Set(ended.signaled);
    signaled.delete(child.pid);
    return { cause, exit: firstExit(child), leftover: signaled.size, residual: ended.residual };
  } finally {
    stopShrinking();
    stopReaping();
  }
}

/** Kill everything of the job, without waiting for handlers. */
export const endJobNow = (first: number, clock: Clock): Promise<EndedProcesses> => {
  const processes = new JobProcesses(first);
  return endProcesses({ find: () => processes.running(), graceMs: 0, clock });
};

async function causeOfEnd({ child, spec, clock, term, isCancel }: Supervision): Promise<Cause> {
  const limit = timeLimit(spec.timeout_seconds, clock);
  try {
    const cause = await Promise.race<Cause>([
      child.exited.then(() => "ended"),
      term.promise.then(() => (isCancel() ? "canceled" : "terminated")),
      limit.promise.then(() => "timeout"),
    ]);
    // Whoever ended first by itself ended by itself, also when the shim was stopped and learns of everything at once.
    return hasEnded(child) ? "ended" : cause;
  } finally {
    limit.cancel();
  }
}

/** Whether the first process is over, by what Bun has been told, or by what the system says before Bun has. */
function hasEnded(child: Bun.Subprocess): boolean {
  if (child.exitCode !== null || child.signalCode !== null) return true;
  const stat = processStat(child.pid);
  return stat === null || isOver(stat);
}

/** Resolves after so many seconds of monotonic time; never for null. */
function timeLimit(seconds: number | null, clock: Clock): { promise: Promise<void>; cancel: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  if (seconds !== null) {
    const deadline = clock.monotonic() + seconds * 1_000;
    const arm = (): void => {
      const left = deadline - clock.monotonic();
      if (left <= 0) resolve();
      else timer = setTimeout(arm, Math.min(left, TIMER_MAX_MS));
    };
    arm();
  }
  return { promise, cancel: () => clearTimeout(timer) };
}

/** Let the first process take leave of what it started, where the attempt says that it does. */
async function firstAlone(child: Bun.Subprocess, seconds: number): Promise<void> {
  if (seconds === 0 || hasEnded(child)) return;
  child.kill("SIGTERM");
  await within(child.exited, seconds * 1_000);
}

async function settle(processes: JobProcesses, clock: Clock): Promise<void> {
  const deadline = clock.monotonic() + SETTLE_MS;
  for (let pause = 1; processes.running().length > 0 && clock.monotonic() < deadline; pause = Math.min(50, pause * 2)) {
    await Bun.sleep(pause);
  }
}

/** Wait for the end of both pipes. Who holds one open without being of the job cannot hold up the end for ever, silent or writing. */
async function drain({ recorders, log, clock, drainMs = DRAIN_MS }: Supervision): Promise<void> {
  const finished = Promise.all(recorders.map((recorder) => recorder.finished)).then(() => true);
  const deadline = clock.monotonic() + drainMs;
  for (;;) {
    if (await Promise.race([finished, Bun.sleep(100).then(() => false)])) return;
    const silent = recorders.every((recorder) => recorder.capture().complete || recorder.idleMs() >= DRAIN_IDLE_MS);
    if (!silent && clock.monotonic() < deadline) continue;
    log.note(`a pipe is still ${silent ? "held open" : "written to"} by a process that is not the job's`);
    await Promise.all(recorders.map((recorder) => recorder.stop()));
    return;
  }
}

/**
 * Wait for adopted processes that have ended. By looking, not by SIGCHLD: a listener of that would take it from Bun, which needs it
 * to notice the end of the first process on kernels without pidfd_open(2).
 */
function reapWhileRunning(processes: JobProcesses): () => void {
  const timer = setInterval(() => processes.running(), REAP_EVERY_MS);
  return () => clearInterval(timer);
}

function firstExit(child: Bun.Subprocess): FirstExit {
  // Signals without a name of their own, real-time ones, come as numbers.
  const signal: unknown = child.signalCode;
  return { code: child.exitCode, signal: signal === null || signal === undefined ? null : String(signal) };
}

function keepSmall(log: Supervision["log"]): () => void {
  const look = (): void => {
    try {
      if (residentBytes() > SHRINK_ABOVE_BYTES) shrinkResidentSet();
    } catch (error) {
      log.note(String(error));
    }
  };
  const first = setTimeout(look, SHRINK_AFTER_MS);
  const again = setInterval(look, SHRINK_EVERY_MS);
  return () => {
    clearTimeout(first);
    clearInterval(again);
  };
}
