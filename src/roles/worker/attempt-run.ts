import type { Attempt } from "../../domain/attempt.ts";
import { isRelayError } from "../../domain/errors.ts";
import type { Job, Lane } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import {
  attemptDirectory,
  hasTraces,
  jobDirectory,
  openAttempt,
  readProcess,
  readStart,
  voidAttempt,
} from "../../execution/attempt-dir.ts";
import { isClaimOf } from "../../execution/exit-record.ts";
import { findJob } from "../../execution/processes.ts";
import { attemptMark, type ExitRecord } from "../../execution/spool-records.ts";
import { isErrno } from "../../lib/atomic-file.ts";
import { Backoff } from "../../lib/backoff.ts";
import { Bell } from "../../lib/bell.ts";
import type { Fence, Notice } from "../../queue/store.ts";
import { AsideAttempt } from "./aside.ts";
import { AttemptLaunch } from "./attempt-launch.ts";
import type { WorkerContext } from "./context.ts";
import { Doorbell } from "./doorbell.ts";
import { Ingester } from "./ingester.ts";
import { endLostAttempt, type ShimClaim } from "./lost-shim.ts";
import { Obstacle } from "./obstacle.ts";
import { isPassing, messageOf, Patience } from "./patience.ts";
import { keptMaxOf, recoveredEvent, settledAsCopy } from "./recovered.ts";
import { settle, settleUnstarted, voidsBefore } from "./settlement.ts";
import { ShimWatch } from "./shim-watch.ts";
import { SlowStart } from "./slow-start.ts";
import { claimDamage } from "./spool-damage.ts";

const POLL_MS = 1_000;

/** A claim that names nobody. */
const UNKNOWN: ShimClaim = { shim: null, cgroup: null, process: null, startedAt: null, understood: false };

/**
 * One attempt from claim (or recovery) to its end. Everything is decided from the attempt's directory and what the queue knows, so it
 * makes no difference which worker started it. A failed step is repeated: for as long as it takes where the failure may pass, and
 * otherwise until its tries are used up; then the attempt goes on, or ends, without it, and says so.
 */
export class AttemptRun {
  readonly fence: Fence;
  readonly directory: string;
  readonly lane: Lane;
  /** Settles when the attempt has ended in the store, or this worker no longer looks after it. */
  readonly finished: Promise<void>;
  /** Settles when it is known whether the attempt lives: what a starting worker waits for before it claims. */
  readonly classified: Promise<void>;

  /** Why no shim could be started, for people: the machine is short of something, and claiming on would not help. Null where one could. */
  launchFailure: string | null = null;

  /** Null until a shim is known to have claimed the attempt. */
  #claim: ShimClaim | null = null;
  #startRecorded = false;
  #canceling: boolean;
  #detached = false;
  #settling = false;
  readonly #stopCollecting = new AbortController();
  readonly #name: string;
  readonly #abort = new AbortController();
  readonly #delay = new Bell();
  readonly #backoff = new Backoff(200, 10_000);
  readonly #doorbell: Doorbell;
  readonly #patience: Patience;
  readonly #ingester: Ingester;
  readonly #launch: AttemptLaunch;
  readonly #watch: ShimWatch;
  readonly #slowStart: SlowStart;
  readonly #keptMax: number;
  /** Set once its records turn out to be of a later version. */
  #aside: AsideAttempt | null = null;
  readonly #obstacle: Obstacle;
  #classify: () => void = () => undefined;

  constructor(
    private readonly context: WorkerContext,
    private readonly job: Job,
    private readonly attempt: Attempt,
    private readonly mode: "new" | "recovered",
  ) {
    this.fence = { job_id: job.job_id, attempt: attempt.attempt };
    this.#name = `${job.job_id}, attempt ${attempt.attempt}`;
    this.lane = job.lane;
    this.directory = attemptDirectory(jobDirectory(context.spoolDir, job.job_id), attempt.attempt);
    this.#canceling = job.cancellation_request !== null;
    this.#doorbell = new Doorbell(this.directory);
    this.#patience = new Patience(this.#abort.signal, (step, cause) => {
      context.laneFailed(`${this.#name}: gave up to ${step}`, cause);
      this.#backoff.reset();
    });
    // process.json is there before the first output. What cannot be recorded is tried again by the next step.
    const startFirst = () => this.#recordStart().catch(() => undefined);
    this.#ingester = new Ingester(context.store, this.fence, this.directory, this.#patience, startFirst);
    this.#launch = new AttemptLaunch(context, job, this.fence, this.directory);
    this.#keptMax = keptMaxOf(context.limits, mode === "new" ? null : this.directory);
    this.#obstacle = new Obstacle(this.fence, (notice) => this.#notice(notice));
    this.#watch = new ShimWatch(context, this.directory, this.#patience, this.#keptMax);
    this.#slowStart = new SlowStart(context.clock, this.directory);
    this.classified = new Promise((resolve) => {
      this.#classify = resolve;
    });
    this.finished = this.#supervise();
  }

  /** What the last look failed for, or a start waits for; null where nothing is in the way. */
  get obstacle(): string | null {
    return this.#obstacle.message;
  }

  /** Ask for the job's end; repeated calls change nothing. */
  cancel(): void {
    // What was asked for before the job had ended has ended it, and its outputs are collected as any other's.
    if (!this.#canceling && this.#settling) this.#stopCollecting.abort();
    this.#canceling = true;
    this.#doorbell.ring("now");
  }

  /**
   * End the attempt where it was set aside and nothing of it runs any more. Resolves to why it had been set aside; null where it was not, or where
   * something runs.
   */
  async giveUp(): Promise<string | null> {
    const gone = this.#aside?.giveUp() ?? null;
    if (gone === null) return null;
    this.#doorbell.ring("now");
    return (await gone) ? this.#aside!.reason : null;
  }

  /** Stop looking after the attempt; shim and job go on. Output seen so far is committed first. */
  async detach(): Promise<void> {
    this.#detached = true;
    this.#abort.abort();
    this.#doorbell.ring("now");
    this.#delay.ring();
    await this.finished;
  }

  async #supervise(): Promise<void> {
    try {
      while (!this.#detached) {
        const went = await this.#try();
        if (went === "over" || this.#detached) return;
        if (went === "failed") await this.#delay.wait(this.#backoff.next());
        else {
          this.#backoff.reset();
          await this.#doorbell.wait(POLL_MS);
        }
      }
    } finally {
      this.#doorbell.close();
      this.#launch.close();
      this.#aside?.letGo();
      this.#classify();
    }
  }

  async #try(): Promise<"over" | "on" | "failed"> {
    try {
      const over = this.#aside === null ? await this.#step() : await this.#leftAside(this.#aside);
      if (!over) {
        const { obstacle } = this.#claim === null ? this.#launch : this.#watch;
        const slow = this.#claim !== null && !this.#startRecorded ? this.#slowStart.obstacle : null;
        await this.#obstacle.set(this.#aside?.reason ?? obstacle ?? slow, this.#aside === null && this.#claim === null);
      }
      return over ? "over" : "on";
    } catch (error) {
      if (isRelayError(error, "attempt_fenced") || this.#detached) return "over";
      this.context.laneFailed(this.#name, error);
      await this.#obstacle
        .set(messageOf(error), this.#claim === null && !isRelayError(error, "version_mismatch"))
        .catch((again: unknown) => this.context.laneFailed(this.#name, again));
      if (isErrno(error, "EACCES", "EPERM")) openAttempt(this.directory);
      if (isRelayError(error, "version_mismatch"))
        this.#aside = new AsideAttempt(this.context, this.attempt, this.fence, this.directory, error);
      // It is not known, but the worker need not wait for it.
      this.#classify();
      return "failed";
    }
  }

  /** Records that this worker does not understand are left to one that does, and so are shim and job. True when it has ended nevertheless. */
  async #leftAside(aside: AsideAttempt): Promise<boolean> {
    await aside.explain();
    return aside.end(this.#canceling);
  }

  /** One look at the directory; true when the attempt has ended. */
  async #step(): Promise<boolean> {
    const patience = this.#patience;
    if (this.#claim === null) {
      const over = await patience.run(
        "start it",
        () => this.#beforeStart(),
        (cause) => this.#endUnstarted(cause),
      );
      if (over) return true;
    }
    if (this.#claim === null) return false;
    this.#classify();
    if (!this.#startRecorded)
      await patience.run(
        "record its start",
        () => this.#recordStart(),
        () => undefined,
      );
    const claim = this.#claim;
    const exit = await this.#findExit(claim);
    // Before anything that can fail for want of room: a job must be stoppable then, too.
    if (exit === null && this.#canceling)
      await patience.run(
        "write cancel.json",
        () => this.#watch.sendCancel(claim, true),
        () => this.#watch.sendCancel(claim, false),
      );
    const more = await patience.run(
      "take in its output",
      () => this.#ingester.ingest(exit !== null),
      () => false,
    );
    if (more) this.#doorbell.ring("now");
    if (exit === null || more) return false;
    const { context, job, fence, directory } = this;
    this.#settling = true;
    const canceled = this.#stopCollecting.signal;
    await settle({ context, job, fence, directory, exit, patience, signal: this.#abort.signal, canceled });
    return true;
  }

  /** Launch, or find out whether a start happened. True when the attempt has ended without one. */
  async #beforeStart(): Promise<boolean> {
    const start = readStart(this.directory);
    if (this.mode === "recovered" && (await settledAsCopy(this.context, this.fence, this.attempt.shim, start))) return true;
    if (this.attempt.state === "running") {
      await this.#goOn(start);
      return false;
    }
    if (start === null) return this.mode === "new" ? this.#launching() : this.#neverStarted();
    if (start !== "torn" && start.claimed_by === "worker") return this.#void(start.reason, null);
    await this.#claimed(start === "torn" ? this.#launch.claim : { ...UNKNOWN, shim: start.shim, cgroup: start.cgroup, understood: true });
    return false;
  }

  /** The queue knows that it runs, and as which processes: whatever start.json says, it has started. */
  async #goOn(start: ReturnType<typeof readStart>): Promise<void> {
    const { shim, process, started_at } = this.attempt;
    const named = start !== null && start !== "torn" && start.claimed_by === "shim" ? start : null;
    const same = isClaimOf(start, shim);
    if (!same) await this.#notice(claimDamage(this.directory, start));
    await this.#claimed({ shim, cgroup: same && named !== null ? named.cgroup : null, process, startedAt: started_at, understood: same });
    this.#startRecorded = true;
  }

  async #claimed(claim: ShimClaim): Promise<void> {
    // That a worker came and went belongs to the job's history.
    if (this.mode === "recovered")
      await this.context.store.appendEvents(this.fence.job_id, [recoveredEvent(claim, this.fence, this.directory)]);
    this.#claim = claim;
    this.#launch.close();
    this.#doorbell.open();
  }

  async #launching(): Promise<boolean> {
    if (!this.#launch.begun && !this.#canceling) {
      try {
        await this.#launch.prepare();
      } catch (error) {
        if (!isRelayError(error) || isPassing(error)) throw error;
        return this.#refuse(error.message);
      }
      try {
        await this.#launch.launch(() => this.#doorbell.ring("now"));
        // Afterwards: the shim need not wait for it, and opening it looks at what is there by then.
        this.#doorbell.open();
        return false;
      } catch (error) {
        if (isErrno(error, "E2BIG", "ENAMETOOLONG")) return this.#refuse(messageOf(error));
      }
    }
    const { failure } = this.#launch;
    return failure === null && !this.#canceling ? false : this.#void("never started", failure);
  }

  /** Nothing names a shim. What carries the attempt's mark was started by one nevertheless. */
  async #neverStarted(): Promise<boolean> {
    if (!this.#runs()) return this.#void("never started", null);
    await this.#unclaimed(UNKNOWN);
    return false;
  }

  async #unclaimed(claim: ShimClaim): Promise<void> {
    await this.#notice(claimDamage(this.directory, null));
    await this.#claimed(claim);
  }

  #runs(): boolean {
    return findJob({ mark: attemptMark(this.fence.job_id, this.fence.attempt), process: null, cgroup: null }).owned.length > 0;
  }

  #notice(notice: Notice): Promise<void> {
    return this.context.store.ingest(this.fence, { deltas: [], truncations: [], emits: [], notices: [notice] });
  }

  /**
   * Win start.json, or find that a shim has. True when the attempt has ended: as void, or as failed when its job could not be started
   * several times in a row.
   */
  async #void(reason: string, failure: unknown): Promise<boolean> {
    // What has started is never started again, whatever its directory says by now.
    if (hasTraces(this.directory) || this.#launch.displaced) {
      await this.#unclaimed(this.#launch.claim);
      return false;
    }
    if (!voidAttempt(this.directory, reason)) {
      this.#doorbell.ring("now");
      return false;
    }
    // It has nothing left to do, and may hang.
    this.#launch.kill();
    if (failure !== null && !this.#canceling) {
      this.launchFailure = messageOf(failure);
      this.context.laneFailed(`launch of ${this.#name}`, failure);
      const tries = 1 + (await voidsBefore(this.context.store, this.fence));
      if (tries >= LIMITS.startTries) return this.#refuse(`it could not be started ${tries} times in a row: ${messageOf(failure)}`);
    }
    await this.context.store.voidAttempt(this.fence, reason);
    return true;
  }

  /** The attempt ends without a start, for a reason that another try would meet again. */
  async #refuse(message: string): Promise<true> {
    await settleUnstarted(this.context, this.fence, this.#canceling ? "canceled" : "spawn_failed", message);
    return true;
  }

  /** No step towards a start is possible any more. */
  async #endUnstarted(cause: unknown): Promise<boolean> {
    if (this.attempt.state === "running") {
      await this.#goOn("torn");
      return false;
    }
    await this.#launch.stop();
    if (this.#runs()) {
      await this.#claimed(UNKNOWN);
      return false;
    }
    if (this.mode === "new") {
      this.launchFailure = messageOf(cause);
      return this.#refuse(`it could not be started: ${messageOf(cause)}`);
    }
    const message = `it cannot be found out whether the attempt had started: ${messageOf(cause)}`;
    await settleUnstarted(this.context, this.fence, this.#canceling ? "canceled" : "outcome_unknown", message);
    return true;
  }

  async #recordStart(): Promise<void> {
    const record = this.#startRecorded ? null : readProcess(this.directory);
    const shim = this.#claim?.shim;
    if (shim == null || record === null) return;
    const { process, started_at } = record;
    await this.context.store.startAttempt(this.fence, { shim, process, started_at });
    this.#claim = { ...this.#claim!, process, startedAt: started_at };
    this.#startRecorded = true;
  }

  /** How the attempt ended; null while its shim may still tell. */
  async #findExit(claim: ShimClaim): Promise<ExitRecord | null> {
    const end = await this.#watch.end(claim);
    if (end !== "lost") return end;
    const { context, fence, directory } = this;
    await this.#noticeDamage(claim);
    const { descendants } = this.#watch;
    const keptMax = this.#keptMax;
    return endLostAttempt({
      context,
      fence,
      directory,
      claim,
      canceling: this.#canceling,
      descendants,
      keptMax,
      signal: this.#abort.signal,
    });
  }

  /** Say what has become of the directory of an attempt that ends without its shim's word. */
  async #noticeDamage({ shim }: ShimClaim): Promise<void> {
    let start: ReturnType<typeof readStart>;
    try {
      start = readStart(this.directory);
    } catch {
      start = "torn";
    }
    if (shim !== null && !isClaimOf(start, shim)) await this.#notice(claimDamage(this.directory, start));
  }
}
