import { isRelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { hasTraces, readExit, readStart, shimOfLater, voidAttempt } from "../../execution/attempt-dir.ts";
import { isClaimOf } from "../../execution/exit-record.ts";
import { findJob } from "../../execution/processes.ts";
import { attemptMark, type ExitRecord } from "../../execution/spool-records.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { isAlive } from "../../lib/system/process-identity.ts";
import { AGAIN, type AttemptHost, type Beginning, claimed, type HostedAttempt, OVER, WAITS } from "./attempt-host.ts";
import { AttemptLaunch } from "./attempt-launch.ts";
import { endLostAttempt, NOBODY, type ShimClaim } from "./lost-shim.ts";
import { isPassing, messageOf } from "./patience.ts";
import { keptMaxOf, settledAsCopy } from "./recovered.ts";
import { settleUnstarted, voidsBefore } from "./settlement.ts";
import { ShimWatch } from "./shim-watch.ts";
import { claimDamage } from "./spool-damage.ts";

/** An attempt on the worker's own host, where its shim and its processes can be seen and signaled. */
export class LocalHost implements AttemptHost {
  readonly tellsDelay = true;
  launchFailure: string | null = null;
  #started = false;
  readonly #launch: AttemptLaunch;
  readonly #watch: ShimWatch;
  readonly #keptMax: number;

  constructor(private readonly around: HostedAttempt) {
    const { context, job, fence, directory, engine, mode, patience } = around;
    this.#launch = new AttemptLaunch(context, job, fence, directory, engine);
    this.#keptMax = keptMaxOf(context.limits, mode === "new" ? null : directory);
    this.#watch = new ShimWatch(context, directory, patience, this.#keptMax);
  }

  get obstacle(): string | null {
    return this.#started ? this.#watch.obstacle : this.#launch.obstacle;
  }

  /** Launch, or find out whether a start happened. */
  async start(): Promise<Beginning> {
    const { context, fence, attempt, mode, directory } = this.around;
    const start = readStart(directory);
    if (mode === "recovered" && (await settledAsCopy(context, fence, attempt.shim, start))) return OVER;
    if (attempt.state === "running") return this.#goOn(start);
    if (start === null) return mode === "new" ? this.#launching() : this.#neverStarted();
    if (start !== "torn" && start.claimed_by === "worker") return this.#void(start.reason, null);
    return claimed(start === "torn" ? this.#launch.claim : { ...NOBODY, shim: start.shim, cgroup: start.cgroup, understood: true });
  }

  lives({ shim }: ShimClaim): boolean {
    return shim !== null && isAlive(shim) && [null, "torn"].includes(readExit(this.around.directory) as null | "torn");
  }

  started(): void {
    this.#started = true;
    if (this.around.mode === "new") this.#watch.begun();
    this.#launch.close();
  }

  close(): void {
    this.#launch.close();
  }

  /** The queue knows that it runs, and as which processes: whatever start.json says, it has started. */
  async #goOn(start: ReturnType<typeof readStart>): Promise<Beginning> {
    const { attempt, directory } = this.around;
    const { shim, process, started_at } = attempt;
    const named = start !== null && start !== "torn" && start.claimed_by === "shim" ? start : null;
    const same = isClaimOf(start, shim);
    if (!same) await this.around.notice(claimDamage(directory, start));
    return claimed({ shim, cgroup: same && named !== null ? named.cgroup : null, process, startedAt: started_at, understood: same }, true);
  }

  async #launching(): Promise<Beginning> {
    const { around } = this;
    if (!this.#launch.begun && !around.canceling()) {
      try {
        await this.#launch.prepare();
      } catch (error) {
        if (!isRelayError(error) || isPassing(error)) throw error;
        return this.#refuse(error.message);
      }
      try {
        await this.#launch.launch(() => around.ring());
        // Afterwards: the shim need not wait for it, and opening it looks at what is there by then.
        around.watch();
        return WAITS;
      } catch (error) {
        if (isErrno(error, "E2BIG", "ENAMETOOLONG")) return this.#refuse(messageOf(error));
        // Nothing that the job could do about it, and no other would start either: it waits for as long as it takes.
        if (isPassing(error)) throw notLaunched(error);
      }
    }
    const { failure } = this.#launch;
    return failure === null && !around.canceling() ? WAITS : this.#void("never started", failure);
  }

  /** Nothing names a shim. What carries the attempt's mark was started by one nevertheless. */
  async #neverStarted(): Promise<Beginning> {
    return this.#runs() ? this.#unclaimed(NOBODY) : this.#void("never started", null);
  }

  async #unclaimed(claim: ShimClaim): Promise<Beginning> {
    await this.around.notice(claimDamage(this.around.directory, null));
    return claimed(claim);
  }

  #runs(): boolean {
    const { job_id, attempt } = this.around.fence;
    return findJob({ mark: attemptMark(job_id, attempt), process: null, cgroup: null }).owned.length > 0;
  }

  /**
   * Win start.json, or find that a shim has. Over when the attempt has ended: as void, or as failed when its job could not be started
   * several times in a row.
   */
  async #void(reason: string, failure: unknown): Promise<Beginning> {
    const { context, fence, directory } = this.around;
    // What has started is never started again, whatever its directory says by now.
    if (hasTraces(directory) || this.#launch.displaced) return this.#unclaimed(this.#launch.claim);
    if (!voidAttempt(directory, reason)) return AGAIN;
    // It has nothing left to do, and may hang.
    this.#launch.kill();
    if (failure !== null && !this.around.canceling()) {
      this.launchFailure = messageOf(failure);
      context.laneFailed(`launch of ${fence.job_id}, attempt ${fence.attempt}`, failure);
      const tries = 1 + (await voidsBefore(context.store, fence));
      if (tries >= LIMITS.startTries) return this.#refuse(`it could not be started ${tries} times in a row: ${messageOf(failure)}`);
    }
    await context.store.voidAttempt(fence, reason);
    return OVER;
  }

  /** The attempt ends without a start, for a reason that another try would meet again. */
  async #refuse(message: string): Promise<Beginning> {
    const { context, fence } = this.around;
    await settleUnstarted(context, fence, this.around.canceling() ? "canceled" : "spawn_failed", message);
    return OVER;
  }

  async cannotStart(cause: unknown): Promise<Beginning> {
    const { context, fence, attempt, mode } = this.around;
    if (attempt.state === "running") return this.#goOn("torn");
    await this.#launch.stop();
    if (this.#runs()) return claimed(NOBODY);
    if (mode === "new") {
      this.launchFailure = messageOf(cause);
      return this.#refuse(`it could not be started: ${messageOf(cause)}`);
    }
    const message = `it cannot be found out whether the attempt had started: ${messageOf(cause)}`;
    await settleUnstarted(context, fence, this.around.canceling() ? "canceled" : "outcome_unknown", message);
    return OVER;
  }

  askToEnd(claim: ShimClaim, write: boolean): void {
    this.#watch.sendCancel(claim, write);
  }

  async end(claim: ShimClaim): Promise<ExitRecord | null> {
    const end = await this.#watch.end(claim);
    if (end !== "lost") return end;
    const { context, fence, directory, signal } = this.around;
    await this.#noticeDamage(claim);
    const { descendants } = this.#watch;
    const canceling = this.around.canceling();
    return endLostAttempt({ context, fence, directory, claim, canceling, descendants, keptMax: this.#keptMax, signal });
  }

  /** Say what has become of the directory of an attempt that ends without its shim's word. */
  async #noticeDamage({ shim }: ShimClaim): Promise<void> {
    let start: ReturnType<typeof readStart>;
    try {
      start = readStart(this.around.directory);
    } catch {
      start = "torn";
    }
    if (shim !== null && !isClaimOf(start, shim)) await this.around.notice(claimDamage(this.around.directory, start));
  }

  mayRun(): boolean {
    const { attempt, fence, directory } = this.around;
    const shim = attempt.shim ?? shimOfLater(directory);
    if (shim !== null && isAlive(shim)) return true;
    const { owned, doubtful } = findJob({ mark: attemptMark(fence.job_id, fence.attempt), process: attempt.process, cgroup: null });
    return owned.length + doubtful.length > 0;
  }
}

/** What the machine was short of, with what that kept from happening; as passing as it was. */
function notLaunched(shortage: unknown): unknown {
  if (isRelayError(shortage) || !(shortage instanceof Error) || !("code" in shortage)) return shortage;
  const { code, message } = shortage;
  return Object.assign(new Error(`no shim could be started: ${message}`, { cause: shortage }), { code });
}
