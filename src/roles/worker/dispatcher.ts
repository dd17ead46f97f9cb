import { setTimeout as pause } from "node:timers/promises";
import type { Attempt } from "../../domain/attempt.ts";
import { slotsOf } from "../../domain/endpoint.ts";
import { isRelayError } from "../../domain/errors.ts";
import { type Job, LANES, type Lane } from "../../domain/job.ts";
import { Backoff } from "../../lib/waiting/backoff.ts";
import type { Finding } from "../../queue/store.ts";
import { AttemptRun } from "./attempt-run.ts";
import type { WorkerContext } from "./context.ts";
import { OBSTACLE_MAX } from "./obstacle.ts";
import { isPassing, messageOf } from "./patience.ts";
import { settledUnflushed } from "./unflushed-claim.ts";

/** A delayed retry is looked for at least this often, so that a clock that stepped cannot hide it for long. */
const DELAY_CAP_MS = 60_000;

/** Claims jobs while there is room, and looks after every attempt of this worker. */
export class Dispatcher {
  readonly #runs = new Map<string, AttemptRun>();
  readonly #backoff = new Backoff(250, 30_000);
  readonly #closing = new AbortController();
  #stopped = true;
  #claiming: Promise<void> | null = null;
  #again = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pausedUntil = 0;
  /** Why nothing is claimed until then. */
  #pausedFor = "";
  #unsubscribe: () => void = () => undefined;

  constructor(private readonly context: WorkerContext) {}

  get active(): number {
    return this.#runs.size;
  }

  /** Adopt or settle what earlier workers left open. Resolves when each attempt's fate is known. */
  async recover(): Promise<void> {
    await Promise.all((await this.context.store.openAttempts()).map((open) => this.#recover(open)));
  }

  async #recover({ job, attempt }: { readonly job: Job; readonly attempt: Attempt }): Promise<void> {
    const { store, endpointId, log } = this.context;
    const name = `${job.job_id}, attempt ${attempt.attempt}`;
    const backoff = new Backoff(250, 30_000);
    for (let held = false; !held; ) {
      try {
        if (await settledUnflushed(this.context, job, attempt)) return;
        await store.takeOverLease({ job_id: job.job_id, attempt: attempt.attempt }, endpointId);
        held = true;
      } catch (error) {
        this.context.laneFailed(`takeover of ${name}`, error);
        // A record that cannot be used keeps no other from being recovered; audit and repair are for it.
        if (!isPassing(error)) return;
        await pause(backoff.next(), undefined, { signal: this.#closing.signal }).catch(() => undefined);
      }
      if (this.#closing.signal.aborted) return;
    }
    log.info(`taking over ${name}`);
    await this.#track(new AttemptRun(this.context, job, attempt, "recovered")).classified;
  }

  /** Begin to claim. */
  start(): void {
    this.#stopped = false;
    const { store } = this.context;
    const unsubscribe = [
      store.subscribe("queue", () => this.#kick()),
      ...LANES.map((lane) => store.subscribe(`ready:${lane}`, () => this.expect(lane))),
    ];
    this.#unsubscribe = () => {
      for (const leave of unsubscribe) leave();
    };
    this.#kick();
  }

  /**
   * A job is being submitted to the lane. Called before its commit, so that its claim can be part of the same one, and again
   * after it. Costs nothing while the lane is full: whatever makes room in it kicks by itself.
   */
  expect(lane: Lane): void {
    const slots = slotsOf(this.context.capacity, lane);
    let taken = 0;
    for (const run of this.#runs.values()) if (run.lane === lane) taken++;
    if (taken >= slots) return;
    this.#kick();
    if (!this.#stopped) this.context.launcher.expect();
  }

  /** No further claims; attempts are detached and go on by themselves. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#closing.abort();
    this.#unsubscribe();
    clearTimeout(this.#timer);
    await this.#claiming;
    await Promise.all([...this.#runs.values()].map((run) => run.detach()));
  }

  /** End the attempts that were set aside and of which nothing runs any more; which they are, and why they had been. */
  async giveUpAside(): Promise<Finding[]> {
    const given = await Promise.all(this.runs().map(async (run) => ({ subject: run.fence.job_id, detail: await run.giveUp() })));
    return given.flatMap(({ subject, detail }) => (detail === null ? [] : [{ check: "quarantine", subject, detail, repairable: true }]));
  }

  /** What stands in the way of a job: of its attempt, or, while it waits, of claiming any. Null where nothing does. */
  obstacle({ job_id, state }: Pick<Job, "job_id" | "state">): string | null {
    const run = this.#runs.get(job_id);
    if (run !== undefined) return run.obstacle;
    return state === "queued" && this.#pause() > 0 ? this.#pausedFor : null;
  }

  /** The job's attempt that is looked after now. */
  run(jobId: string): AttemptRun | undefined {
    return this.#runs.get(jobId);
  }

  /** The attempts that are looked after now. */
  runs(): AttemptRun[] {
    return [...this.#runs.values()];
  }

  #kick(): void {
    if (this.#stopped) return;
    this.#again = true;
    this.#claiming ??= this.#claimAll().finally(() => {
      this.#claiming = null;
      if (this.#again) this.#kick();
    });
  }

  async #claimAll(): Promise<void> {
    const { store, endpointId, capacity } = this.context;
    while (this.#again && !this.#stopped) {
      this.#again = false;
      try {
        await this.#passOnCancels();
        while (!this.#stopped && this.#pause() === 0) {
          const claim = await store.claim(endpointId, capacity);
          if (claim === null) break;
          this.#track(new AttemptRun(this.context, claim.job, claim.attempt, "new"));
        }
        const delay = this.#pause() || (await store.nextDelay());
        if (delay !== null) this.#later(Math.min(delay, DELAY_CAP_MS));
      } catch (error) {
        this.context.laneFailed("claim", error);
        this.#pauseFor(messageOf(error));
        this.#later(this.#pause());
      }
    }
  }

  async #passOnCancels(): Promise<void> {
    for (const { job_id } of await this.context.store.cancelRequests()) this.#runs.get(job_id)?.cancel();
  }

  /** Milliseconds for which nothing is claimed, because claiming or launching failed; 0 when nothing is wrong. */
  #pause(): number {
    return Math.max(0, this.#pausedUntil - this.context.clock.monotonic());
  }

  #pauseFor(reason: string): void {
    this.#pausedUntil = this.context.clock.monotonic() + this.#backoff.next();
    this.#pausedFor = reason.slice(0, OBSTACLE_MAX);
  }

  #later(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#kick(), ms);
  }

  #track(run: AttemptRun): AttemptRun {
    this.#runs.set(run.fence.job_id, run);
    run.finished
      .catch((error: unknown) => {
        if (!isRelayError(error, "attempt_fenced")) this.context.laneFailed("run", error);
      })
      .finally(() => {
        if (this.#runs.get(run.fence.job_id) === run) this.#runs.delete(run.fence.job_id);
        if (run.launchFailure !== null) this.#pauseFor(`no shim could be started: ${run.launchFailure}`);
        else this.#backoff.reset();
        this.#kick();
      });
    return run;
  }
}
