import type { Attempt } from "../../domain/attempt.ts";
import { isRelayError } from "../../domain/errors.ts";
import type { Job, Lane } from "../../domain/job.ts";
import { attemptDirectory, jobDirectory, readExit, readProcess, readStart, voidAttempt, writeCancel } from "../../execution/attempt-dir.ts";
import type { StartRecord } from "../../execution/spool-records.ts";
import { Backoff } from "../../lib/backoff.ts";
import { timestamp } from "../../lib/clock.ts";
import { isAlive } from "../../lib/process-identity.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import { Doorbell } from "./doorbell.ts";
import { Ingester } from "./ingester.ts";
import { endLostAttempt } from "./lost-shim.ts";
import { prepare } from "./prepare.ts";
import { settle } from "./settlement.ts";

/** How long a launched shim may take to claim its attempt before the worker claims it back. */
const START_DEADLINE_MS = 30_000;
/** How long a cancelled shim may take beyond the grace period before the worker does its work. */
const CANCEL_MARGIN_MS = 45_000;
const POLL_MS = 1_000;

type Phase = "launching" | "recovering" | "started" | "running";

/**
 * One attempt from claim (or recovery) to its end. Everything is decided from the attempt's directory, so it makes no
 * difference which worker started it. Repeats a failed step until it succeeds or the attempt is fenced.
 */
export class AttemptRun {
  readonly fence: Fence;
  readonly directory: string;
  readonly lane: Lane;
  /** Settles when the attempt has ended in the store, or this worker no longer looks after it. */
  readonly finished: Promise<void>;
  /** Settles when it is known whether the attempt lives: what a starting worker waits for before it claims. */
  readonly classified: Promise<void>;

  /** True when no shim could be started: the machine is short of something, and claiming on would not help. */
  launchFailed = false;

  #phase: Phase;
  /** Null until a shim has claimed the attempt; `torn` when its claim cannot be read, so that it cannot be alive. */
  #start: Extract<StartRecord, { claimed_by: "shim" }> | "torn" | null = null;
  #canceling: boolean;
  #cancelSentAt: number | null = null;
  #launchedAt: number | null = null;
  #shimExited = false;
  #detached = false;
  readonly #abort = new AbortController();
  readonly #doorbell: Doorbell;
  readonly #ingester: Ingester;
  #classify: () => void = () => undefined;

  constructor(
    private readonly context: WorkerContext,
    private readonly job: Job,
    attempt: Attempt,
    mode: "new" | "recovered",
  ) {
    this.fence = { job_id: job.job_id, attempt: attempt.attempt };
    this.lane = job.lane;
    this.directory = attemptDirectory(jobDirectory(context.spoolDir, job.job_id), attempt.attempt);
    this.#phase = mode === "new" ? "launching" : "recovering";
    this.#canceling = job.cancellation_request !== null;
    this.#doorbell = new Doorbell(this.directory);
    this.#ingester = new Ingester(context.store, this.fence, this.directory);
    this.classified = new Promise((resolve) => {
      this.#classify = resolve;
    });
    this.finished = this.#supervise();
  }

  /** Ask for the job's end; repeated calls change nothing. */
  cancel(): void {
    this.#canceling = true;
    this.#doorbell.ring("now");
  }

  /** Stop looking after the attempt; shim and job go on. Output seen so far is committed first. */
  async detach(): Promise<void> {
    this.#detached = true;
    this.#abort.abort();
    this.#doorbell.ring("now");
    await this.finished;
  }

  async #supervise(): Promise<void> {
    const backoff = new Backoff(200, 10_000);
    try {
      for (;;) {
        let done = false;
        try {
          done = await this.#step();
          backoff.reset();
        } catch (error) {
          if (isRelayError(error, "attempt_fenced") || this.#detached) return;
          // It is not known, but the worker need not wait for it.
          this.#classify();
          this.context.laneFailed(`attempt ${this.fence.job_id}/${this.fence.attempt}`, error);
          await pause(backoff.next(), this.#abort.signal);
          if (this.#detached) return;
          continue;
        }
        if (done || this.#detached) return;
        await this.#doorbell.wait(POLL_MS);
      }
    } finally {
      this.#doorbell.close();
      this.#classify();
    }
  }

  /** One look at the directory; true when the attempt has ended. */
  async #step(): Promise<boolean> {
    if (this.#phase === "launching" || this.#phase === "recovering") {
      if (await this.#beforeStart()) return true;
      if (this.#start === null) return false;
    }
    this.#classify();
    if (this.#phase === "started") await this.#recordStart();
    let exit = readExit(this.directory);
    // Looked at again after the shim was seen to be gone: it may have written its last file in between.
    if (exit === null && this.#shimIsGone()) exit = readExit(this.directory) ?? "torn";
    if (exit === "torn")
      exit = await endLostAttempt(this.context, this.fence, this.directory, this.#start, this.#canceling, this.#abort.signal);
    // Before anything that can fail for want of room: a job must be stoppable then, too.
    if (exit === null && this.#canceling) this.#sendCancel();
    const more = await this.#ingester.ingest(exit !== null);
    if (more) this.#doorbell.ring("now");
    if (exit === null || more) return false;
    await settle(this.context, this.job, this.fence, this.directory, exit, this.#abort.signal);
    return true;
  }

  /** Launch, or find out whether a start happened. True when the attempt was voided. */
  async #beforeStart(): Promise<boolean> {
    const start = readStart(this.directory);
    if (start === null) {
      if (this.#phase === "launching" && this.#launchedAt === null && !this.#canceling) {
        prepare(this.context, this.job, this.fence, this.directory, await this.context.store.segments(this.fence.job_id));
        this.#doorbell.open();
        this.#launchedAt = this.context.clock.monotonic();
        try {
          const shim = await this.context.launcher.launch(this.directory);
          void shim.exited.then(() => {
            this.#shimExited = true;
            this.#doorbell.ring("now");
          });
          return false;
        } catch (error) {
          this.launchFailed = true;
          this.context.laneFailed(`launch of ${this.fence.job_id}/${this.fence.attempt}`, error);
          return this.#void("the shim could not be launched");
        }
      }
      const overdue =
        this.#shimExited || this.#launchedAt === null || this.context.clock.monotonic() - this.#launchedAt > START_DEADLINE_MS;
      if (this.#phase !== "recovering" && !this.#canceling && !overdue) return false;
      const voided = await this.#void("never started");
      if (voided && this.#shimExited && !this.#canceling) {
        this.launchFailed = true;
        this.context.laneFailed(
          `launch of ${this.fence.job_id}/${this.fence.attempt}`,
          new Error("the shim ended before it claimed its attempt"),
        );
      }
      return voided;
    }
    if (start !== "torn" && start.claimed_by === "worker") return this.#void(start.reason);
    const recovered = this.#phase === "recovering";
    this.#start = start;
    this.#phase = "started";
    this.#doorbell.open();
    if (recovered) await this.#noteRecovery();
    return false;
  }

  /** That a worker came and went belongs to the job's history. */
  #noteRecovery(): Promise<void> {
    const { attempt, job_id } = this.fence;
    const adopted = this.#start !== "torn" && this.#start !== null && readExit(this.directory) === null && isAlive(this.#start.shim);
    return this.context.store.appendEvents(job_id, [
      adopted
        ? { event_type: "execution.adopted", message: `A new worker looks after attempt ${attempt}, which goes on.`, payload: { attempt } }
        : {
            event_type: "execution.restart_reconciled",
            message: `A new worker found that attempt ${attempt} had ended meanwhile.`,
            payload: { attempt },
          },
    ]);
  }

  /** Win start.json, or find that a shim has. */
  async #void(reason: string): Promise<boolean> {
    if (!voidAttempt(this.directory, reason)) {
      this.#doorbell.ring("now");
      return false;
    }
    await this.context.store.voidAttempt(this.fence, reason);
    return true;
  }

  async #recordStart(): Promise<void> {
    const record = readProcess(this.directory);
    if (this.#start === null || this.#start === "torn" || record === null) return;
    await this.context.store.startAttempt(this.fence, { shim: this.#start.shim, process: record.process, started_at: record.started_at });
    this.#phase = "running";
  }

  #sendCancel(): void {
    if (this.#cancelSentAt !== null || this.#start === null || this.#start === "torn") return;
    writeCancel(this.directory, timestamp(this.context.clock));
    if (isAlive(this.#start.shim)) process.kill(this.#start.shim.pid, "SIGTERM");
    this.#cancelSentAt = this.context.clock.monotonic();
  }

  #shimIsGone(): boolean {
    if (this.#start === null || this.#start === "torn") return true;
    const { shim } = this.#start;
    if (!isAlive(shim)) return true;
    const overdue =
      this.#cancelSentAt !== null &&
      this.context.clock.monotonic() - this.#cancelSentAt > this.context.limits.cancelGraceSeconds * 1_000 + CANCEL_MARGIN_MS;
    // A shim that was stopped or hangs cannot end its job; without it the worker can.
    if (overdue) process.kill(shim.pid, "SIGKILL");
    return false;
  }
}

/** Wait, or until the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
