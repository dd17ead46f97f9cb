import { isRelayError } from "../domain/errors.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import type { Timers } from "../lib/timers.ts";
import { settled } from "./settled.ts";

/** Pause before the next attempt: the first, and the longest; milliseconds. */
const FIRST_MS = 100;
const CAP_MS = 5_000;
/** How long a request waits for attempts that fail before it is told why: a service has its worker back in less; milliseconds. */
const PATIENCE_MS = 5_000;

/** Attempts to have a link again, one after the other, and the requests that wait for it. */
export class Regaining {
  readonly #backoff = new Backoff(FIRST_MS, CAP_MS);
  #attempted = Promise.withResolvers<void>();
  #failure: unknown;
  #over = false;
  #goOn: () => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly timers: Timers,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  /** @param goesOn asked before each attempt @param attempt rejects when it fails */
  async run(goesOn: () => boolean, attempt: () => Promise<void>, report: (error: unknown) => void): Promise<void> {
    while (goesOn()) {
      const { resolve } = this.#attempted;
      try {
        await attempt();
      } catch (error) {
        this.#failure = error;
        if (!isRelayError(error)) report(error);
      }
      this.#attempted = Promise.withResolvers();
      resolve();
      if (goesOn()) await this.#pause();
    }
    this.#over = true;
    this.#attempted.resolve();
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.timers.after(this.#backoff.next(), resolve);
      this.#goOn = () => {
        cancel();
        resolve();
      };
    });
  }

  /** The next attempt is made now, or it is seen now that there is to be none. */
  hurry(): void {
    this.#backoff.reset();
    this.#goOn();
  }

  /**
   * Wait until it is over, one way or the other.
   *
   * @throws what the last attempt ended with when they fail for long; the signal's reason
   */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    const until = this.clock.monotonic() + this.patienceMs;
    this.hurry();
    while (!this.#over) {
      await settled(this.#attempted.promise, signal);
      if (!this.#over && this.clock.monotonic() >= until) throw this.#failure;
    }
  }
}
