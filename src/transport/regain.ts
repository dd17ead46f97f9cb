import { isRelayError, RelayError } from "../domain/errors.ts";
import type { Clock } from "../lib/waiting/clock.ts";
import { Pace } from "../lib/waiting/pace.ts";
import type { Timers } from "../lib/waiting/timers.ts";
import { growsTo, retryAfter } from "./meeting/codes.ts";
import { settled } from "./settled.ts";

/** How long a request waits for attempts that fail before it is told why: a service has its worker back in less; milliseconds. */
const PATIENCE_MS = 5_000;

/** How attempts and those who wait for them go together. */
export interface Waiting {
  /** How long a request waits. */
  readonly patienceMs?: number;
  /** Whether one that waits lets the next attempt be made at once; left out: it does. */
  readonly eager?: boolean;
  /** When attempts are made; kept over several times of loss, so that what comes and goes is not tried without a pause. */
  readonly pace?: Pace;
}

/** Attempts to have a link again, one after the other, and the requests that wait for it. */
export class Regaining {
  readonly #pace: Pace;
  #attempted = Promise.withResolvers<void>();
  #failure: unknown;
  #over = false;
  readonly #patienceMs: number;
  readonly #eager: boolean;

  constructor(
    private readonly clock: Clock,
    private readonly timers: Timers,
    { patienceMs = PATIENCE_MS, eager = true, pace }: Waiting = {},
  ) {
    this.#patienceMs = patienceMs;
    this.#eager = eager;
    this.#pace = pace ?? new Pace(clock, timers);
  }

  /** @param goesOn asked before each attempt @param attempt rejects when it fails */
  async run(goesOn: () => boolean, attempt: () => Promise<void>, report: (error: unknown) => void): Promise<void> {
    while (goesOn()) {
      const { resolve } = this.#attempted;
      const began = this.clock.monotonic();
      try {
        await attempt();
      } catch (error) {
        this.#failure = error;
        if (!isRelayError(error)) report(error);
      }
      this.#attempted = Promise.withResolvers();
      resolve();
      if (goesOn()) await this.#pace.pause(retryAfter(this.#failure), growsTo(this.#failure), this.clock.monotonic() - began);
    }
    this.#over = true;
    this.#attempted.resolve();
  }

  /** The next attempt is made now, or it is seen now that there is to be none. */
  hurry(): void {
    this.#pace.hurry();
  }

  /** What keeps the attempt that is under way from its end; told to requests that do not wait longer. */
  hindered(why: unknown): void {
    this.#failure = why;
  }

  /**
   * Wait until it is over, one way or the other.
   *
   * @throws what the last attempt ended with when they fail for long, or when the next one is not made for long; the signal's reason
   */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    const until = this.clock.monotonic() + this.#patienceMs;
    if (this.#eager) this.hurry();
    while (!this.#over) {
      const left = until - this.clock.monotonic();
      if (left <= 0 || this.#pace.left > left) throw this.#failure ?? notYet();
      await within(settled(this.#attempted.promise, signal), left, this.timers);
    }
  }

  /**
   * Make an attempt now, and wait for what becomes of it, or of the one that is under way.
   *
   * @throws what it ended with, or what keeps it from its end for so long; the signal's reason
   */
  async now(signal: AbortSignal, patienceMs: number): Promise<void> {
    this.hurry();
    await within(settled(this.#attempted.promise, signal), patienceMs, this.timers);
    if (!this.#over) throw this.#failure ?? notYet();
  }
}

const notYet = (): RelayError => new RelayError("link_down", "the link is still being brought up");

/** Resolves with the promise, or when the time is over; rejects with the promise. */
export function within(promise: Promise<void>, ms: number, timers: Timers): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = timers.after(ms, resolve);
    promise.then(resolve, reject).finally(cancel);
  });
}
