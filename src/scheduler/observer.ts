import type { SchedulerStatus } from "../domain/scheduler.ts";
import { Backoff } from "../lib/waiting/backoff.ts";
import { type Clock, timestamp } from "../lib/waiting/clock.ts";
import type { Timers } from "../lib/waiting/timers.ts";
import { type NativeJob, nativeKey, type SchedulerProvider } from "./provider.ts";
import { blankStatus } from "./status.ts";

/** Least time between the beginnings of two looks, and how long an answer counts as one of now. */
export const LOOK_MS = 5_000;
const BACKOFF_CAP_MS = 60_000;
/** Answers about jobs that nobody watches, which are kept for whoever asks next. */
const ASKED_MAX = 1_000;
/** So many looks in a row have to agree that a job which was active is nowhere. */
const ABSENT_LOOKS = 2;

/** Told of every answer about a job; `changed` when it differs from the one before by more than time that has passed. */
export type StatusListener = (status: SchedulerStatus, changed: boolean) => void;

export interface ObserverOptions {
  readonly provider: SchedulerProvider;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Told when what the provider does is at fault. */
  readonly onTrouble?: (message: string, error: unknown) => void;
}

interface Watched {
  readonly native: NativeJob;
  readonly listeners: Set<StatusListener>;
  /** Who asked once and waits for the next look. */
  readonly asking: ((status: SchedulerStatus) => void)[];
}

interface Known {
  readonly status: SchedulerStatus;
  /** By the monotonic clock. */
  readonly at: number;
}

/** A source that failed. */
interface Resting {
  readonly backoff: Backoff;
  until: number;
  said: string;
}

/**
 * Asks a scheduler about all jobs that somebody watches at once: each source at most once in 5 s, and none while nobody watches. A source that fails rests for 5, 10,
 * 20, up to 60 s, while the others go on being asked.
 */
export class SchedulerObserver {
  readonly #watched = new Map<string, Watched>();
  readonly #known = new Map<string, Known>();
  readonly #absent = new Map<string, number>();
  readonly #resting = new Map<string, Resting>();
  #lookedAt = Number.NEGATIVE_INFINITY;
  #running = false;
  #looking: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;

  constructor(private readonly options: ObserverOptions) {}

  start(): void {
    this.#running = true;
    this.#plan();
  }

  /** Resolves when no look is under way any more, and none will be. Who waits for an answer gets the last one that there is. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    await this.#looking;
    for (const [key, { native, asking }] of this.#watched) this.#answer(asking, this.#latest(key, native));
  }

  /** Sources that rest because they failed, with what they said. */
  failures(): ReadonlyMap<string, string> {
    return new Map([...this.#resting].map(([source, { said }]) => [source, said]));
  }

  /** Be told of a job from the next look on. Returns the way to end that. */
  watch(native: NativeJob, listener: StatusListener): () => void {
    const key = nativeKey(native);
    this.#entry(native).listeners.add(listener);
    this.#plan();
    return () => {
      this.#watched.get(key)?.listeners.delete(listener);
      this.#forget(key);
    };
  }

  /**
   * What is known of a job: not older than 5 s, but where the sources do not answer; then it is the last answer, as `observed_at` says, or `unknown` with
   * `record_found` null.
   */
  once(native: NativeJob): Promise<SchedulerStatus> {
    const key = nativeKey(native);
    const known = this.#known.get(key);
    if (known !== undefined && this.options.clock.monotonic() - known.at < LOOK_MS) return Promise.resolve(known.status);
    if (!this.#running) return Promise.resolve(this.#latest(key, native));
    return new Promise((resolve) => {
      this.#entry(native).asking.push(resolve);
      this.#plan();
    });
  }

  #entry(native: NativeJob): Watched {
    const key = nativeKey(native);
    let entry = this.#watched.get(key);
    if (entry === undefined) {
      entry = { native, listeners: new Set(), asking: [] };
      this.#watched.set(key, entry);
    }
    return entry;
  }

  #forget(key: string): void {
    const entry = this.#watched.get(key);
    if (entry === undefined || entry.listeners.size > 0 || entry.asking.length > 0) return;
    this.#watched.delete(key);
    this.#absent.delete(key);
    if (this.#watched.size > 0) return;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #plan(): void {
    if (!this.#running || this.#watched.size === 0 || this.#looking !== null || this.#cancelTimer !== null) return;
    const wait = Math.max(0, this.#lookedAt + LOOK_MS - this.options.clock.monotonic());
    this.#cancelTimer = this.options.timers.after(wait, () => {
      this.#cancelTimer = null;
      this.#looking = this.#look().finally(() => {
        this.#looking = null;
        this.#plan();
      });
    });
  }

  async #look(): Promise<void> {
    const { provider, clock, onTrouble } = this.options;
    this.#lookedAt = clock.monotonic();
    // About whatever is new meanwhile the next look asks.
    const entries = [...this.#watched].map(([key, entry]) => ({ key, entry, asking: entry.asking.splice(0) }));
    const without = new Set([...this.#resting].filter(([, { until }]) => until > this.#lookedAt).map(([source]) => source));
    try {
      const natives = entries.map(({ entry }) => entry.native);
      const { statuses, failures } = await provider.observe(natives, { without, positions: entries.some(({ key }) => this.#mayWait(key)) });
      this.#rest(failures, without);
      for (const { key, entry } of entries) this.#take(key, entry, statuses.get(key));
    } catch (error) {
      onTrouble?.("a look at the scheduler's jobs failed", error);
    }
    for (const { key, entry, asking } of entries) {
      this.#answer(asking, this.#latest(key, entry.native));
      // What has just been heard is an answer for those, too, who came while it was asked for.
      if (this.#known.get(key)?.at === this.#lookedAt) this.#answer(entry.asking, this.#latest(key, entry.native));
      this.#forget(key);
    }
  }

  /** Whether a place in the queue is of interest: nothing is known of it, or it waits. */
  #mayWait(key: string): boolean {
    const phase = this.#known.get(key)?.status.phase;
    return phase === undefined || phase === "pending" || phase === "submitted";
  }

  #rest(failures: ReadonlyMap<string, string>, without: ReadonlySet<string>): void {
    const now = this.options.clock.monotonic();
    // A look that took long counts from its end.
    const from = now - this.#lookedAt < LOOK_MS ? this.#lookedAt : now;
    for (const source of this.#resting.keys()) if (!failures.has(source) && !without.has(source)) this.#resting.delete(source);
    for (const [source, said] of failures) {
      const resting = this.#resting.get(source) ?? { backoff: new Backoff(LOOK_MS, BACKOFF_CAP_MS, () => 0), until: 0, said };
      resting.said = said;
      resting.until = from + resting.backoff.next();
      this.#resting.set(source, resting);
    }
  }

  #take(key: string, entry: Watched, status: SchedulerStatus | undefined): void {
    if (status === undefined || this.#isTooSoon(key, status)) return;
    const before = this.#known.get(key)?.status;
    this.#keep(key, status);
    const changed = before === undefined || !alike(before, status);
    for (const listener of [...entry.listeners]) {
      try {
        listener(status, changed);
      } catch (error) {
        this.options.onTrouble?.(`whoever watches ${status.scheduler_job_id} failed`, error);
      }
    }
  }

  /** One answer that has not a job which was active may come of a scheduler that has just started. */
  #isTooSoon(key: string, status: SchedulerStatus): boolean {
    if (status.record_found !== false) {
      this.#absent.delete(key);
      return false;
    }
    const times = (this.#absent.get(key) ?? 0) + 1;
    this.#absent.set(key, times);
    return this.#known.get(key)?.status.active_record_found === true && times < ABSENT_LOOKS;
  }

  #keep(key: string, status: SchedulerStatus): void {
    this.#known.delete(key);
    this.#known.set(key, { status, at: this.#lookedAt });
    for (const old of this.#known.keys()) {
      if (this.#known.size <= ASKED_MAX + this.#watched.size) break;
      if (!this.#watched.has(old)) this.#known.delete(old);
    }
  }

  /** The last answer, or that there is none. */
  #latest(key: string, { id, cluster }: NativeJob): SchedulerStatus {
    return this.#known.get(key)?.status ?? blankStatus(this.options.provider.name, id, cluster, timestamp(this.options.clock));
  }

  #answer(asking: ((status: SchedulerStatus) => void)[], status: SchedulerStatus): void {
    for (const resolve of asking.splice(0)) resolve(status);
  }
}

/** Whether two answers say the same, but for the time that passed between them. */
function alike(a: SchedulerStatus, b: SchedulerStatus): boolean {
  const timeless = ({ observed_at: _, elapsed_seconds: __, ...rest }: SchedulerStatus): string => JSON.stringify(rest);
  return timeless(a) === timeless(b);
}
