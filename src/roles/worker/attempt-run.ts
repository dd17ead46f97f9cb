import type { Attempt } from "../../domain/attempt.ts";
import { isRelayError } from "../../domain/errors.ts";
import type { Job, Lane } from "../../domain/job.ts";
import type { JarvisExecution } from "../../domain/views.ts";
import { attemptDirectory, openAttempt, readProcess } from "../../execution/attempt-dir.ts";
import type { ExitRecord } from "../../execution/spool-records.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { Backoff } from "../../lib/waiting/backoff.ts";
import { Bell } from "../../lib/waiting/bell.ts";
import type { Fence, Notice, Started } from "../../queue/store.ts";
import { AllocationHost } from "./allocation/allocation-host.ts";
import { AsideAttempt } from "./aside.ts";
import type { AttemptHost, HostedAttempt } from "./attempt-host.ts";
import type { WorkerContext } from "./context.ts";
import { Doorbell } from "./doorbell.ts";
import { type EngineAttempt, recordedEnd } from "./engines/engine.ts";
import { attemptWith } from "./engines/engines.ts";
import { Ingester } from "./ingester.ts";
import { placeFor } from "./job-place.ts";
import { LocalHost } from "./local-host.ts";
import type { ShimClaim } from "./lost-shim.ts";
import { Obstacle } from "./obstacle.ts";
import { messageOf, Patience } from "./patience.ts";
import { recoveredEvent } from "./recovered.ts";
import { settle } from "./settlement.ts";
import { SlowStart } from "./slow-start.ts";

const POLL_MS = 1_000;

const hostOf = (attempt: HostedAttempt): AttemptHost =>
  "scheduler" in attempt.job.spec && attempt.job.lane === "scheduler"
    ? new AllocationHost(attempt, attempt.context.schedulers)
    : new LocalHost(attempt);

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

  /** Null until a shim is known to have claimed the attempt. */
  #claim: ShimClaim | null = null;
  #startRecorded = false;
  /** Until when its start may wait for its end, on the monotonic clock: both are one commit then. */
  #briefUntil = 0;
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
  readonly #slowStart: SlowStart;
  readonly #host: AttemptHost;
  readonly #engine: EngineAttempt;
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
    this.directory = attemptDirectory(placeFor(context, job), attempt.attempt);
    this.#canceling = job.cancellation_request !== null;
    this.#doorbell = new Doorbell(this.directory);
    this.#patience = new Patience(this.#abort.signal, (step, cause) => {
      context.laneFailed(`${this.#name}: gave up to ${step}`, cause);
      this.#backoff.reset();
    });
    // process.json is there before the first output. What cannot be recorded is tried again by the next step.
    const startFirst = () => this.#recordStart().catch(() => undefined);
    this.#ingester = new Ingester(context.store, this.fence, this.directory, this.#patience, startFirst);
    this.#obstacle = new Obstacle(this.fence, (notice) => this.#notice(notice));
    this.#slowStart = new SlowStart(context.clock, this.directory);
    const wake = () => this.#doorbell.ring("now");
    const recovered = mode === "recovered";
    this.#engine = attemptWith(context.engines, { context, job, fence: this.fence, directory: this.directory, recovered, wake });
    this.#host = hostOf({
      context,
      job,
      attempt,
      fence: this.fence,
      directory: this.directory,
      mode,
      patience: this.#patience,
      signal: this.#abort.signal,
      canceling: () => this.#canceling,
      engine: this.#engine,
      ring: wake,
      watch: () => this.#doorbell.open(),
      takeIn: () => this.#takeIn(),
      notice: (notice) => this.#notice(notice),
    });
    this.classified = new Promise((resolve) => {
      this.#classify = resolve;
    });
    this.finished = this.#supervise();
  }

  /** Why no shim could be started, for people: the machine is short of something, and claiming on would not help. Null where one could. */
  get launchFailure(): string | null {
    return this.#host.launchFailure;
  }

  /** What the last look failed for, or a start waits for; null where nothing is in the way. */
  get obstacle(): string | null {
    return this.#obstacle.message;
  }

  /** What JARVIS-CD said last of its pipeline; null where nothing is known. */
  get jarvis(): JarvisExecution["said"] {
    return this.#engine.said ?? null;
  }

  /** Ask for the job's end; repeated calls change nothing. */
  cancel(): void {
    // What was asked for before the job had ended has ended it, and its outputs are collected as any other's.
    if (!this.#canceling && this.#settling) this.#stopCollecting.abort();
    if (!this.#canceling) this.#delay.ring();
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
          await this.#doorbell.wait(this.#isBrief ? this.#briefUntil - this.context.clock.monotonic() : POLL_MS);
        }
      }
    } finally {
      this.#doorbell.close();
      this.#host.close();
      await this.#engine.close().catch((error: unknown) => this.context.laneFailed(this.#name, error));
      this.#aside?.letGo();
      this.#classify();
    }
  }

  async #try(): Promise<"over" | "on" | "failed"> {
    try {
      const over = this.#aside === null ? await this.#step() : await this.#leftAside(this.#aside);
      if (!over) {
        const slow = this.#claim !== null && !this.#startRecorded ? this.#slowStart.obstacle : null;
        await this.#obstacle.set(this.#aside?.reason ?? this.#host.obstacle ?? slow, this.#aside === null && this.#delayed);
      }
      return over ? "over" : "on";
    } catch (error) {
      if (isRelayError(error, "attempt_fenced") || this.#detached) return "over";
      this.context.laneFailed(this.#name, error);
      await this.#obstacle
        .set(messageOf(error), this.#delayed && !isRelayError(error, "version_mismatch"))
        .catch((again: unknown) => this.context.laneFailed(this.#name, again));
      if (isErrno(error, "EACCES", "EPERM")) openAttempt(this.directory);
      if (isRelayError(error, "version_mismatch"))
        this.#aside = new AsideAttempt(this.context, this.fence, error, () => this.#host.mayRun());
      // It is not known, but the worker need not wait for it.
      this.#classify();
      return "failed";
    }
  }

  get #delayed(): boolean {
    return this.#claim === null && this.#host.tellsDelay;
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
      const beginning = await patience.run(
        "start it",
        () => this.#host.start(),
        (cause) => this.#host.cannotStart(cause),
      );
      if (beginning.kind === "over") return true;
      if (beginning.kind === "again") this.#doorbell.ring("now");
      if (beginning.kind === "waits") this.#classify();
      if (beginning.kind !== "claimed") return false;
      await this.#claimed(beginning.claim);
      this.#startRecorded = beginning.recorded;
    }
    this.#classify();
    const isBrief = this.#isBrief;
    if (!this.#startRecorded && !isBrief)
      await patience.run(
        "record its start",
        () => this.#recordStart(),
        () => undefined,
      );
    const claim = this.#claim!;
    const exit = await this.#host.end(claim);
    if (exit === "over") return true;
    if (exit === null && isBrief && !this.#canceling) return false;
    // Before anything that can fail for want of room: a job must be stoppable then, too.
    if (exit === null && this.#canceling)
      await patience.run(
        "write cancel.json",
        () => this.#host.askToEnd(claim, true),
        () => this.#host.askToEnd(claim, false),
      );
    const more = await patience.run(
      "take in its output",
      () => this.#ingester.ingest(exit !== null),
      () => false,
    );
    if (more) this.#doorbell.ring("now");
    if (exit !== null) return !more && this.#settled(exit);
    await patience.run(
      "look at what its engine says",
      () => this.#engine.look(),
      () => undefined,
    );
    return false;
  }

  /** Record the end, once the engine knows it. False while what the attempt started goes on elsewhere. */
  async #settled(exit: ExitRecord): Promise<boolean> {
    const { context, job, fence, directory } = this;
    const patience = this.#patience;
    const end = await patience.run(
      "ask its engine how it ended",
      () => this.#engine.end(exit, this.#canceling),
      () => recordedEnd(exit),
    );
    if (end === null) return false;
    this.#settling = true;
    const canceled = this.#stopCollecting.signal;
    const started = this.#startRecorded ? null : this.#readStarted();
    this.#settling = await settle({ context, job, fence, directory, exit, end, started, patience, signal: this.#abort.signal, canceled });
    return this.#settling;
  }

  async #claimed(claim: ShimClaim): Promise<void> {
    // That a worker came and went belongs to the job's history.
    if (this.mode === "recovered")
      await this.context.store.appendEvents(this.fence.job_id, [recoveredEvent(this.#host.lives(claim), this.fence)]);
    this.#claim = claim;
    if (this.mode === "new") this.#briefUntil = this.context.clock.monotonic() + (this.#engine.briefMs ?? 0);
    this.#host.started();
    this.#doorbell.open();
  }

  async #takeIn(): Promise<void> {
    if (this.#claim !== null && !this.#startRecorded) await this.#recordStart();
    while (await this.#ingester.ingest(false));
  }

  #notice(notice: Notice): Promise<void> {
    return this.context.store.ingest(this.fence, { deltas: [], truncations: [], emits: [], notices: [notice] });
  }

  /** Whether its end may come before its start has to be on record. */
  get #isBrief(): boolean {
    return this.#claim !== null && !this.#startRecorded && this.context.clock.monotonic() < this.#briefUntil;
  }

  async #recordStart(): Promise<void> {
    const started = this.#startRecorded ? null : this.#readStarted();
    if (started === null) return;
    await this.context.store.startAttempt(this.fence, started);
    this.#claim = { ...this.#claim!, process: started.process, startedAt: started.started_at };
    this.#startRecorded = true;
  }

  /** What is to be recorded of its start; null while that is not known. */
  #readStarted(): Started | null {
    const shim = this.#claim?.shim;
    const record = shim == null ? null : readProcess(this.directory);
    return shim == null || record === null ? null : { shim, process: record.process, started_at: record.started_at };
  }
}
