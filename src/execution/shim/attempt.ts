import fs from "node:fs";
import path from "node:path";
import type { Outcome } from "../../domain/job.ts";
import { createFileExclusive, fsyncDirectory, isErrno } from "../../lib/files/atomic-file.ts";
import { isThere } from "../../lib/files/file-system.ts";
import type { HeldDirectory } from "../../lib/files/held-directory.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import { type AttemptSpec, type ExitRecord, type ExitStream, FILES, RECORD_VERSION, type Usage } from "../spool-records.ts";
import { type Surroundings, withSurroundings } from "./allocation.ts";
import type { PassedSignals } from "./allocation-signals.ts";
import { memoryKills } from "./memory-kills.ts";
import { notStarted, outcomeOf, shimFailed, withMemoryKills } from "./outcome.ts";
import { abandon, claimText, holds, isUsable, type Provision, provide } from "./provision.ts";
import { recordExit } from "./record-exit.ts";
import type { ShimLog } from "./shim-log.ts";
import { readSpecFile } from "./spec-file.ts";
import { reasonNotStarted, type StartedJob, startJob } from "./start-job.ts";
import { endJobNow, superviseJob } from "./supervise.ts";
import type { TermSignal } from "./term-signal.ts";

const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const NO_OUTPUT: ExitStream = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: EMPTY_SHA256 };

export interface AttemptOptions {
  /** The attempt's, by its name. */
  readonly directory: string;
  /** The same, held: whatever the job puts in its place, nothing is written anywhere else. */
  readonly place: HeldDirectory;
  readonly version: string;
  readonly clock: Clock;
  readonly log: ShimLog;
  readonly term: TermSignal;
  /** Where it runs in an allocation; left out on the worker's host. */
  readonly surroundings?: Surroundings | undefined;
  /** Signals that go on to the job's first process. */
  readonly passed?: PassedSignals | undefined;
  /** What a spare has made beforehand. */
  readonly provision?: Provision | undefined;
  /** Milliseconds for which a write to a full disk is tried again; that of exit.json is so for ever, but less often then. */
  readonly patienceMs: number;
  /** Milliseconds for which a start is tried again while the system is short of files, processes or memory. As `patienceMs` when left out. */
  readonly startPatienceMs?: number;
  /** As in Supervision. */
  readonly drainMs?: number | undefined;
  /** False where the queue says without the claim and the record of the end that the attempt may have started (docs/spool.md, Kept servers). */
  readonly flushes?: boolean | undefined;
  /** What takes the place of starting the spec's program and seeing to its end; never throws once something runs. */
  readonly runs?: RunClaimed | undefined;
}

/** Runs an attempt that is claimed. */
export type RunClaimed = (options: AttemptOptions, provision: Provision) => Promise<ExitRecord>;

/**
 * Run one attempt: claim it, start the job, record its output, see to its end, write exit.json.
 *
 * @returns how it ended; null where the attempt was not this shim's to run
 * @throws when it could not be claimed either way; nothing was executed then. Once it is claimed, nothing is thrown
 */
export async function runAttempt(options: AttemptOptions): Promise<Outcome | null> {
  const { directory, place, clock, term } = options;
  if (term.received) return null;
  const provision = provisionFor(options);
  let claimed = false;
  try {
    claimed = claim(options, provision);
  } finally {
    if (!claimed) abandon(provision);
  }
  if (!claimed) return null;
  const exit = await (options.runs ?? runClaimed)(options, provision).catch((error: unknown) => {
    options.log.note(`failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return unstarted(shimFailed(error), clock);
  });
  for (const file of [provision.process, provision.logs.stdout, provision.logs.stderr]) file.abandon();
  provision.claim.discard();
  const content = JSON.stringify(exit);
  await recordExit({
    ...options,
    isThere: () => place.isAt(directory),
    commit: () => provision.exit.commit(place.path, content, options.flushes !== false),
  });
  provision.exit.abandon();
  return exit.outcome;
}

function provisionFor({ place, version, provision, surroundings }: AttemptOptions): Provision {
  if (provision !== undefined) {
    if (isUsable(provision, place.path)) return provision;
    abandon(provision);
  }
  return provide(place.path, version, false, surroundings?.allocation);
}

function claim({ directory, place, version, surroundings, flushes = true }: AttemptOptions, provision: Provision): boolean {
  const target = path.join(place.path, FILES.start);
  const isOurs = holds(provision)
    ? provision.claim.publish(target, flushes)
    : createFileExclusive(target, claimText(version, surroundings?.allocation));
  if (!isOurs) return false;
  if (!flushes) return true;
  // A claim has to be found again: the way to it is flushed before anything is executed.
  fsyncDirectory(path.dirname(directory));
  fsyncDirectory(path.dirname(path.dirname(directory)));
  return true;
}

async function runClaimed(options: AttemptOptions, provision: Provision): Promise<ExitRecord> {
  const { place, clock } = options;
  if (isCancel(place)) return unstarted(notStarted("canceled", "canceled before it started"), clock);
  let spec: AttemptSpec;
  let started: StartedJob;
  try {
    spec = readSpecFile(place.path);
    if (options.surroundings !== undefined) spec = { ...spec, env: withSurroundings(spec.env, options.surroundings.variables) };
    const found = await startPatiently(spec, options, provision);
    if (found === null)
      return unstarted(notStarted(isCancel(place) ? "canceled" : "spawn_failed", "asked to end before it started"), clock);
    started = found;
    provision.exit.moveTo(place.path);
    provision.claim.discard();
  } catch (error) {
    return unstarted(notStarted("spawn_failed", reasonNotStarted(error)), clock);
  }
  return conclude(started, spec, options);
}

/** Start the job, trying again while the system is short of something. Null when the shim was asked to end meanwhile. */
async function startPatiently(spec: AttemptSpec, options: AttemptOptions, provision: Provision): Promise<StartedJob | null> {
  const { clock, term, log, startPatienceMs = options.patienceMs } = options;
  const deadline = clock.monotonic() + startPatienceMs;
  for (let tries = 0; ; tries++) {
    try {
      return startJob(spec, { ...options, place: options.place.path }, provision);
    } catch (error) {
      if (!isErrno(error, ...SHORTAGES) || clock.monotonic() >= deadline) throw error;
      if (tries === 0) log.note(`not started, trying again: ${String(error)}`);
    }
    await Bun.sleep(START_RETRY_MS);
    if (term.received) return null;
  }
}

const SHORTAGES = ["EMFILE", "ENFILE", "EAGAIN", "ENOMEM"];
const START_RETRY_MS = 250;

async function conclude(started: StartedJob, spec: AttemptSpec, options: AttemptOptions): Promise<ExitRecord> {
  const { place, clock, term, log } = options;
  const { child, recorders, startedAt } = started;
  options.passed?.to(child.pid);
  const supervision = {
    child,
    recorders: Object.values(recorders),
    spec,
    clock,
    term,
    isCancel: () => {
      try {
        return isCancel(place);
      } catch (error) {
        log.note(`whether it is a cancel cannot be seen: ${String(error)}`);
        return false;
      }
    },
    log,
    drainMs: options.drainMs,
  };
  let outcome: Outcome;
  let leftover = 0;
  try {
    const end = await superviseJob(supervision);
    options.passed?.to(null);
    outcome = outcomeOf(end.cause, end.exit, spec, end.residual, isThere(path.join(place.path, FILES.envSetupFailed)));
    leftover = end.leftover;
  } catch (error) {
    log.note(`supervision failed: ${String(error)}`);
    const { residual } = await endJobNow(child.pid, clock);
    outcome = shimFailed(error, residual);
  }
  const streams = { stdout: recorders.stdout.conclude(), stderr: recorders.stderr.conclude() };
  for (const fd of started.logs) flush(fd, log);
  const kills = killsOf(options);
  return {
    record_version: RECORD_VERSION,
    outcome: withMemoryKills(outcome, kills),
    started_at: startedAt,
    ended_at: timestamp(clock),
    streams,
    usage: usageOf(child),
    leftover,
    ...(options.surroundings !== undefined && term.received && !supervision.isCancel() ? { asked_to_end: true } : {}),
    ...(kills > 0 ? { memory_kills: kills } : {}),
  };
}

function killsOf({ surroundings, log }: AttemptOptions): number {
  try {
    return memoryKills(surroundings?.allocation);
  } catch (error) {
    log.note(`whether memory ran out cannot be seen: ${String(error)}`);
    return 0;
  }
}

/** @throws when it cannot be seen whether there is a cancel */
export const isCancel = (place: HeldDirectory): boolean => isThere(path.join(place.path, FILES.cancel));

export const unstarted = (outcome: Outcome, clock: Clock): ExitRecord => ({
  record_version: RECORD_VERSION,
  outcome,
  started_at: null,
  ended_at: timestamp(clock),
  streams: { stdout: NO_OUTPUT, stderr: NO_OUTPUT },
  usage: null,
  leftover: 0,
});

function flush(fd: number, log: ShimLog): void {
  try {
    fs.fsyncSync(fd);
  } catch (error) {
    log.note(`log not flushed: ${String(error)}`);
  }
}

function usageOf(child: Bun.Subprocess): Usage | null {
  const usage = child.resourceUsage();
  if (usage === undefined) return null;
  return {
    user_seconds: Number(usage.cpuTime.user) / 1e6,
    system_seconds: Number(usage.cpuTime.system) / 1e6,
    max_rss_bytes: usage.maxRSS,
  };
}
