import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../../lib/atomic-file.ts";
import type { Clock } from "../../lib/clock.ts";
import { startFileThreads } from "../../lib/file-threads.ts";
import { HeldDirectory } from "../../lib/held-directory.ts";
import { becomeSubreaper } from "../../lib/libc.ts";
import { runAttempt } from "./attempt.ts";
import { abandon, type Provision, provide } from "./provision.ts";
import { rehearse } from "./rehearsal.ts";
import { ShimLog } from "./shim-log.ts";
import { listenForTerm } from "./term-signal.ts";

/** What the shim needs of the process around it. */
export interface ShimIo {
  /** Version of the relay, for start.json. */
  readonly version: string;
  readonly clock: Clock;
  /** File descriptor of standard input, where a spare shim is told its attempt, and whose end says to any other that it may claim. */
  readonly stdin: number;
  /** Milliseconds for which a full disk is tried again, before the attempt is not claimed, or an output stream is cut. 10 s. */
  readonly patienceMs?: number;
  /** Milliseconds for which the pipes are read once no process of the job is left. 30 s. */
  readonly drainMs?: number;
}

const PATIENCE_MS = 10_000;
const ROOM_RETRY_MS = 250;
const PATH_MAX_BYTES = 4_096;
const THREADS_MS = 5_000;

/**
 * The shim: run one attempt and see it to its end. `argv` is the attempt's directory; or `--spare SPOOL`, or `--told SPOOL` for one whose attempt is near: then the
 * directory is the one line that comes on standard input, and its end without one means that nobody needs the shim any more.
 *
 * @returns the exit code: 0 when the attempt has ended, was somebody else's, or none came; 1 when it could not be claimed; 2 for
 * arguments that are neither
 */
export async function runShim(argv: readonly string[], io: ShimIo): Promise<number> {
  const [first = "", second] = argv;
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
  const provision = spool === null ? undefined : provideEarly(spool, io.version);
  // Without them it could not even notice that it is told its attempt.
  if (!(await threads)) {
    if (provision !== undefined) abandon(provision);
    return 1;
  }
  if (first === "--spare") await rehearse(second!, io.clock);
  const told = await (heard ?? hear());
  const directory = given ?? told;
  if (directory === null) {
    if (provision !== undefined) abandon(provision);
    return 0;
  }
  using place = held(directory);
  if (place === null) {
    if (provision !== undefined) abandon(provision);
    return 1;
  }
  const log = new ShimLog(place.path, io.clock);
  if (!subreaper) log.note("not a subreaper: processes that leave the job's tree are found by their environment only");
  const patienceMs = io.patienceMs ?? PATIENCE_MS;
  const deadline = io.clock.monotonic() + patienceMs;
  for (let made = provision; ; made = undefined) {
    try {
      await runAttempt({
        directory,
        place,
        version: io.version,
        clock: io.clock,
        log,
        term,
        provision: made,
        patienceMs,
        drainMs: io.drainMs,
      });
      return 0;
    } catch (error) {
      if (!isErrno(error, "ENOSPC", "EDQUOT") || io.clock.monotonic() >= deadline) {
        log.note(`not claimed: ${String(error)}`);
        return 1;
      }
    }
    await Bun.sleep(ROOM_RETRY_MS);
  }
}

/** An attempt without a directory of its own cannot be claimed, and there is nowhere to say so. */
function held(directory: string): HeldDirectory | null {
  try {
    const jobDir = path.dirname(directory);
    return new HeldDirectory(path.dirname(jobDir), path.basename(jobDir), path.basename(directory));
  } catch {
    return null;
  }
}

/** A shim that waits makes its files meanwhile. Where it cannot, it does so when it has an attempt. */
function provideEarly(spool: string, version: string): Provision | undefined {
  try {
    return provide(spool, version);
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
