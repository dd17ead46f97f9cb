import fs from "node:fs";
import os from "node:os";
import type { Outcome } from "../../domain/job.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { startFileThreads } from "../../lib/files/file-threads.ts";
import type { HeldDirectory } from "../../lib/files/held-directory.ts";
import { becomeSubreaper } from "../../lib/system/libc.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { within } from "../../lib/waiting/within.ts";
import { CANNOT_RUN } from "../spool-records.ts";
import { type Surroundings, surroundings } from "./allocation.ts";
import { PassedSignals, termOrCancel } from "./allocation-signals.ts";
import { runAttempt } from "./attempt.ts";
import { heldAttempt } from "./held-attempt.ts";
import { codeOf } from "./outcome.ts";
import { abandon, holds, type Provision, provide, renewed } from "./provision.ts";
import { rehearse } from "./rehearsal.ts";
import { ShimLog } from "./shim-log.ts";
import { listenForTerm, type TermSignal } from "./term-signal.ts";

/** What the shim needs of the process around it. */
export interface ShimIo {
  /** Version of the relay, for start.json. */
  readonly version: string;
  readonly clock: Clock;
  /** File descriptor of standard input, where a spare shim is told its attempt, and whose end says to any other that it may claim. */
  readonly stdin: number;
  /** The process's environment, of which a job in an allocation gets what the scheduler says about that. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds for which a full disk is tried again, before the attempt is not claimed, or an output stream is cut. 10 s. */
  readonly patienceMs?: number;
  /** Milliseconds for which the pipes are read once no process of the job is left. 30 s. */
  readonly drainMs?: number;
}

const PATIENCE_MS = 10_000;
/** The machine is short of something that others give back: what they run may take minutes. */
const START_PATIENCE_MS = 600_000;
const ROOM_RETRY_MS = 250;
const PATH_MAX_BYTES = 4_096;
const THREADS_MS = 5_000;
/** By when a spare is in its cgroup: the kernel takes up to some 20 ms for it. */
const PLACED_MS = 100;

/**
 * The shim: run one attempt and see it to its end. `argv` is the attempt's directory; or `--spare SPOOL`, or `--told SPOOL` for one whose attempt is near: then the
 * directory is the one line that comes on standard input, and its end without one means that nobody needs the shim any more.
 *
 * `--allocation DIRECTORY` is for one that a scheduler's batch script becomes: it waits for nobody, names the allocation in its claim, gives the job what
 * the scheduler says about that, and ends with the job's code, so that the scheduler calls failed what has failed.
 *
 * @returns the exit code: 0 when the attempt has ended, was somebody else's, or none came; 1 when it could not be claimed; 2 for
 * arguments that are none of these; CANNOT_RUN for --allocation outside of one
 */
export async function runShim(argv: readonly string[], io: ShimIo): Promise<number> {
  const [first = "", second] = argv;
  if (first === "--allocation" && argv.length === 2 && second !== "") return runInAllocation(second!, io);
  const waits = first === "--spare" || first === "--told";
  if (argv.length !== (waits ? 2 : 1) || argv.includes("")) return 2;
  const spool = waits ? second! : null;
  const given = waits ? null : first;
  const term = listenForTerm();
  const subreaper = becomeSubreaper();
  const threads = startFileThreads(THREADS_MS);
  // Whoever starts a shim closes its input when it is in its cgroup, which the claim names.
  const hear = (): Promise<string | null> => Promise.race([readLine(io.stdin), term.promise.then(() => null)]);
  const heard = first === "--spare" ? null : hear();
  let provision = spool === null ? undefined : provideEarly(spool, io.version, first === "--spare");
  // Without them it could not even notice that it is told its attempt.
  if (!(await threads)) {
    if (provision !== undefined) abandon(provision);
    return 1;
  }
  if (first === "--spare") await rehearse(second!, io.clock);
  const hearing = heard ?? hear();
  if (first === "--spare" && provision !== undefined) provision = await inItsPlace(provision, hearing, io.version);
  const told = await hearing;
  const directory = given ?? told;
  if (directory === null) {
    if (provision !== undefined) abandon(provision);
    return 0;
  }
  using place = heldAttempt(directory);
  if (place === null) {
    if (provision !== undefined) abandon(provision);
    return 1;
  }
  return (await run({ directory, place, term, subreaper, io, provision })).code;
}

async function runInAllocation(directory: string, io: ShimIo): Promise<number> {
  const around = surroundings(io.environment ?? {}, os.hostname());
  const term = listenForTerm();
  const passed = new PassedSignals();
  const subreaper = becomeSubreaper();
  if (!(await startFileThreads(THREADS_MS))) return 1;
  using place = heldAttempt(directory);
  if (place === null) return 1;
  if (around === null) {
    new ShimLog(place.path, io.clock).note(
      "not claimed: there is no allocation here, neither SLURM_JOB_ID nor JOB_ID and SGE_ROOT are set",
    );
    return CANNOT_RUN;
  }
  const ended = { term: termOrCancel(term, directory), passed };
  const { code, outcome } = await run({ directory, place, ...ended, subreaper, io, surroundings: around });
  return outcome === null ? code : codeOf(outcome);
}

interface Run {
  readonly directory: string;
  readonly place: HeldDirectory;
  readonly term: TermSignal;
  readonly subreaper: boolean;
  readonly io: ShimIo;
  readonly provision?: Provision | undefined;
  readonly surroundings?: Surroundings;
  readonly passed?: PassedSignals;
}

/** The attempt from its claim on. `code`: 1 where it could not be claimed; `outcome`: null where it was not run by this shim. */
async function run({ directory, place, term, subreaper, io, provision, surroundings: around, passed }: Run): Promise<{
  readonly code: 0 | 1;
  readonly outcome: Outcome | null;
}> {
  const log = new ShimLog(place.path, io.clock);
  if (!subreaper) log.note("not a subreaper: processes that leave the job's tree are found by their environment only");
  const patienceMs = io.patienceMs ?? PATIENCE_MS;
  const deadline = io.clock.monotonic() + patienceMs;
  for (let made = provision; ; made = undefined) {
    try {
      const outcome = await runAttempt({
        directory,
        place,
        version: io.version,
        clock: io.clock,
        log,
        term,
        provision: made,
        surroundings: around,
        passed,
        patienceMs,
        startPatienceMs: io.patienceMs ?? START_PATIENCE_MS,
        drainMs: io.drainMs,
      });
      return { code: 0, outcome };
    } catch (error) {
      if (!isErrno(error, "ENOSPC", "EDQUOT") || io.clock.monotonic() >= deadline) {
        log.note(`not claimed: ${String(error)}`);
        return { code: 1, outcome: null };
      }
    }
    await Bun.sleep(ROOM_RETRY_MS);
  }
}

/** A spare is moved into its cgroup after it was started; unless it is told its attempt before, its claim is made anew there. */
async function inItsPlace(provision: Provision, told: Promise<unknown>, version: string): Promise<Provision> {
  if ((await within(told, PLACED_MS)) || holds(provision)) return provision;
  try {
    return renewed(provision, version);
  } catch {
    return provision;
  }
}

/** A shim that waits makes its files meanwhile. Where it cannot, it does so when it has an attempt. */
function provideEarly(spool: string, version: string, flushed: boolean): Provision | undefined {
  try {
    return provide(spool, version, flushed);
  } catch {
    return undefined;
  }
}

/** One line, without its newline; null at the end of input. */
async function readLine(fd: number): Promise<string | null> {
  const buffer = Buffer.alloc(PATH_MAX_BYTES + 1);
  let length = 0;
  while (length < buffer.length) {
    const count = await new Promise<number>((resolve) => {
      fs.read(fd, buffer, length, buffer.length - length, null, (error, read) => resolve(error === null ? read : 0));
    });
    if (count === 0) return null;
    length += count;
    const end = buffer.subarray(0, length).indexOf(10);
    if (end > 0) return buffer.toString("utf8", 0, end);
  }
  return null;
}
