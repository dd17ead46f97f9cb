import fs from "node:fs";
import path from "node:path";
import { writeCancel } from "../../execution/attempt-dir.ts";
import { attemptExit } from "../../execution/exit-record.ts";
import { inAttempt } from "../../execution/own-place.ts";
import { descendantsOf } from "../../execution/process-table.ts";
import type { ExitRecord } from "../../execution/spool-records.ts";
import { isErrno } from "../../lib/atomic-file.ts";
import { timestamp } from "../../lib/clock.ts";
import { isAlive, isOver, type ProcessStat, processStat } from "../../lib/process-identity.ts";
import type { WorkerContext } from "./context.ts";
import type { ShimClaim } from "./lost-shim.ts";
import type { Patience } from "./patience.ts";

/** How long a cancelled shim may take beyond the grace period before the worker does its work. */
const CANCEL_MARGIN_MS = 45_000;
/** How long a shim may go on without any process of its job. It reads pipes for 30 s at most, flushes, and writes one record. */
const IDLE_MS = 120_000;
const LOOK_EVERY_MS = 1_000;

/** What a claimed attempt's shim does: asks it to end, finds out how the attempt ended, and sees when it does neither. */
export class ShimWatch {
  #cancelSentAt: number | null = null;
  /** Since when nothing of the job runs below the shim. */
  #idleSince: number | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #descendants: readonly ProcessStat[] = [];

  constructor(
    private readonly context: WorkerContext,
    private readonly directory: string,
    private readonly patience: Patience,
    /** Bytes that the shim keeps of one stream at most. */
    private readonly keptMax: number,
    private readonly idleMs: number = IDLE_MS,
  ) {}

  /** What ran below the shim when it was last looked at, all of the job's: a shim that is killed hands them to somebody else. */
  get descendants(): readonly ProcessStat[] {
    return this.#descendants;
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
    if (this.#cancelSentAt !== null || shim === null) return;
    if (write) writeCancel(this.directory, timestamp(this.context.clock));
    if (isAlive(shim)) process.kill(shim.pid, "SIGTERM");
    this.#cancelSentAt = this.context.clock.monotonic();
  }

  #isGone({ shim }: ShimClaim): boolean {
    if (shim === null || !isAlive(shim)) return true;
    const now = this.context.clock.monotonic();
    const overdue =
      this.#cancelSentAt !== null && now - this.#cancelSentAt > this.context.limits.cancelGraceSeconds * 1_000 + CANCEL_MARGIN_MS;
    // A shim that was stopped or hangs cannot end its job; without it the worker can.
    if (overdue || this.#isStuck(shim.pid, now)) kill(shim.pid);
    return false;
  }

  /** Whether a shim has had nothing to do but to record the end for so long that it never will, though there is a place for it. */
  #isStuck(pid: number, now: number): boolean {
    if (now - this.#lookedAt < LOOK_EVERY_MS) return false;
    this.#lookedAt = now;
    this.#descendants = descendantsOf(pid).filter((stat) => !isOver(stat));
    if (this.#descendants.length > 0) {
      this.#idleSince = null;
      return false;
    }
    this.#idleSince ??= now;
    if (now - this.#idleSince < this.idleMs) return false;
    // One that is stopped, or waits for a disk, goes on when it may.
    const state = processStat(pid)?.state ?? "X";
    return !["T", "t", "D"].includes(state) && isWritable(this.directory);
  }
}

/** Whether the job's first process runs beside a record of its end: the job has written that itself, and its shim still looks after it. */
const firstRuns = ({ process }: ShimClaim, { outcome }: ExitRecord): boolean =>
  process !== null && isAlive(process) && !outcome.residual.includes(process.pid);

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error;
  }
}

/** Whether a record could be written: true also where the directory is not the attempt's any more, in which there is nothing to wait for. */
function isWritable(directory: string): boolean {
  try {
    return inAttempt(
      directory,
      (place) => {
        const probe = path.join(place, `.probe.${process.pid}.tmp`);
        fs.writeFileSync(probe, " ".repeat(4_096), { flag: "wx", mode: 0o600 });
        fs.rmSync(probe, { force: true });
        return true;
      },
      true,
    );
  } catch {
    return false;
  }
}
