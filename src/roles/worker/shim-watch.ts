import fs from "node:fs";
import path from "node:path";
import { writeCancel } from "../../execution/attempt-dir.ts";
import { isFrozen, ownCgroup } from "../../execution/cgroup.ts";
import { attemptExit } from "../../execution/exit-record.ts";
import { inAttempt } from "../../execution/own-place.ts";
import { descendantsOf } from "../../execution/process-table.ts";
import type { ExitRecord } from "../../execution/spool-records.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { isAlive, isOver, type ProcessStat, processStat } from "../../lib/system/process-identity.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import type { WorkerContext } from "./context.ts";
import type { ShimClaim } from "./lost-shim.ts";
import { messageOf, type Patience } from "./patience.ts";

/** How long a cancelled shim may take beyond the grace period before the worker does its work. */
const CANCEL_MARGIN_MS = 45_000;
/** How long a shim may go on without any process of its job. It reads pipes for 30 s at most, flushes, and writes one record. */
const IDLE_MS = 120_000;
const LOOK_EVERY_MS = 1_000;
/** No more time than this passes for a shim between two looks: where there were more, this process did not run, and perhaps nothing did. */
const LOOK_GAP_MS = 2_000;

/** What a claimed attempt's shim does: asks it to end, finds out how the attempt ended, and sees when it does neither. */
export class ShimWatch {
  #cancelSent = false;
  /** For how long it has been asked to end, less the time in which there was nothing but the record left, and no place for that. */
  #canceledMs = 0;
  /** For how long nothing of the job has run below the shim, which could have recorded the end. */
  #idleMs = 0;
  #lookedAt: number | null = null;
  #descendants: readonly ProcessStat[] = [];
  #stopped: string | null = null;
  #obstacle: string | null = null;

  constructor(
    private readonly context: WorkerContext,
    private readonly directory: string,
    private readonly patience: Patience,
    /** Bytes that the shim keeps of one stream at most. */
    private readonly keptMax: number,
    private readonly idleMaxMs: number = IDLE_MS,
  ) {}

  /** What ran below the shim when it was last looked at, all of the job's: a shim that is killed hands them to somebody else. */
  get descendants(): readonly ProcessStat[] {
    return this.#descendants;
  }

  /** What keeps the shim from going on; null where nothing is seen to. */
  get obstacle(): string | null {
    return this.#obstacle;
  }

  /** The shim has begun just now: nothing of its job is to be seen before the next look is due. */
  begun(): void {
    this.#lookedAt ??= this.context.clock.monotonic();
  }

  /** The record of the attempt's end; `lost` when its shim is gone without one that counts, null while it may still come. */
  async end(claim: ShimClaim): Promise<ExitRecord | "lost" | null> {
    const read = () =>
      this.patience.run(
        "read exit.json",
        () => attemptExit(this.directory, { shim: claim.shim, understood: claim.understood, keptMax: this.keptMax }),
        () => "torn" as const,
      );
    const exit = await read();
    if (exit !== null && exit !== "torn" && !firstRuns(claim, exit)) return exit;
    if (!this.#isGone(claim)) return null;
    // Looked at again after the shim was seen to be gone: it may have written its last file in between.
    const last = await read();
    return last === null || last === "torn" ? "lost" : last;
  }

  /** @param write false where cancel.json cannot be written: TERM alone ends the job, too */
  sendCancel({ shim }: ShimClaim, write: boolean): void {
    if (this.#cancelSent || shim === null) return;
    if (write) writeCancel(this.directory, timestamp(this.context.clock));
    if (isAlive(shim)) process.kill(shim.pid, "SIGTERM");
    this.#cancelSent = true;
  }

  #isGone({ shim }: ShimClaim): boolean {
    if (shim === null || !isAlive(shim)) {
      this.#obstacle = null;
      return true;
    }
    const passed = this.#passed();
    if (passed === null) return false;
    this.#look(shim.pid, passed);
    const graceMs = this.context.limits.cancelGraceSeconds * 1_000;
    // A shim that was stopped or hangs cannot end its job; without it the worker can.
    if (this.#canceledMs > graceMs + CANCEL_MARGIN_MS || this.#idleMs > this.idleMaxMs) kill(shim.pid);
    return false;
  }

  /** Milliseconds since the last look; null while it is too early for another. */
  #passed(): number | null {
    const now = this.context.clock.monotonic();
    const passed = this.#lookedAt === null ? 0 : now - this.#lookedAt;
    if (this.#lookedAt !== null && passed < LOOK_EVERY_MS) return null;
    this.#lookedAt = now;
    return Math.min(passed, LOOK_GAP_MS);
  }

  /** One that cannot go on is not out of time: it has the whole of it from the moment when it can. */
  #look(pid: number, passed: number): void {
    const wasIdle = this.#descendants.length === 0;
    this.#descendants = descendantsOf(pid).filter((stat) => !isOver(stat));
    const isIdle = this.#descendants.length === 0;
    const stopped = whyStopped(pid);
    // Most shims are gone by the next look: only then does it matter whether there is a place for the record.
    const noPlace = isIdle && wasIdle ? whyNotWritable(this.directory) : null;
    this.#idleMs = isIdle && stopped === null && noPlace === null ? this.#idleMs + passed : 0;
    // Where only the record is left, killing the shim would lose it, and nobody else could write one.
    if (this.#cancelSent) this.#canceledMs = noPlace === null ? this.#canceledMs + passed : 0;
    // Once is not worth a word: every process waits for its disk now and then.
    const stays = stopped === this.#stopped ? stopped : null;
    this.#stopped = stopped;
    this.#obstacle = noPlace === null ? stays : `its shim cannot record the end: ${noPlace}`;
  }
}

/**
 * Whether the job's first process runs beside a record of its end: the job has written that itself, and its shim still looks after it. A shim that is its job's
 * first process goes on for others.
 */
const firstRuns = ({ process, shim }: ShimClaim, { outcome }: ExitRecord): boolean =>
  process !== null && process.pid !== shim?.pid && isAlive(process) && !outcome.residual.includes(process.pid);

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error;
  }
}

/** What keeps a process from running, whatever it would like to do; null where nothing does. */
function whyStopped(pid: number): string | null {
  const state = processStat(pid)?.state ?? "X";
  if (state === "T" || state === "t") return `its shim, process ${pid}, is stopped`;
  if (state === "D") return `its shim, process ${pid}, waits for a disk or a file server`;
  const group = ownCgroup(`/proc/${pid}`);
  return group !== null && isFrozen(group) ? `its shim, process ${pid}, is frozen with its cgroup` : null;
}

/** Why no record could be written; null where one could, also where the directory is not the attempt's any more: there is nothing to wait for then. */
function whyNotWritable(directory: string): string | null {
  try {
    return inAttempt(
      directory,
      (place) => {
        try {
          tryRoom(place);
          return null;
        } catch (error) {
          // By the name that people know.
          return messageOf(error).replace(place, directory);
        }
      },
      null,
    );
  } catch (error) {
    return messageOf(error);
  }
}

/** A file without a name, which nobody has to remove (open(2), Linux 3.11). */
const UNNAMED = 0o20_000_000 | fs.constants.O_DIRECTORY | fs.constants.O_RDWR;
const PAGE = Buffer.alloc(4_096, " ");

/** Make a file, write a page and let it go. @throws the system's error where that cannot be done */
function tryRoom(place: string): void {
  let file: number;
  try {
    file = fs.openSync(place, UNNAMED, 0o600);
  } catch (error) {
    // Not every file system has them.
    if (!isErrno(error, "EOPNOTSUPP", "ENOTSUP", "EISDIR", "EINVAL")) throw error;
    const probe = path.join(place, `.probe.${process.pid}.tmp`);
    try {
      fs.writeFileSync(probe, PAGE, { flag: "wx", mode: 0o600 });
    } finally {
      fs.rmSync(probe, { force: true });
    }
    return;
  }
  try {
    fs.writeSync(file, PAGE);
  } finally {
    fs.closeSync(file);
  }
}
