import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { Timers } from "./timers.ts";
import { WakeWatch } from "./wake.ts";

/** Pause before the next attempt: the first, and the longest; milliseconds. */
export const FIRST_MS = 100;
export const CAP_MS = 5_000;
/** What has lasted so long lets the pauses begin anew. */
const LASTED_MS = 30_000;
/** How often the clocks are looked at. */
const LOOK_MS = 1_000;

/**
 * When something that fails is tried again: after pauses that double up to a cap, each drawn from its upper half, and that begin anew when something has lasted, when the
 * machine wakes up, and when somebody wants it now.
 */
export class Pace {
  readonly #backoff: Backoff;
  #goOn: () => void = () => undefined;
  /** How often in a row the pause that was asked for was one that grows. */
  #grown = 0;
  /** When the pause that is under way is over; by the monotonic clock. */
  #until = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    private readonly timers: Timers,
    random: () => number = Math.random,
  ) {
    this.#backoff = new Backoff(FIRST_MS, CAP_MS, random, 0.5);
  }

  /** Milliseconds until the next attempt; 0 while no pause is under way. */
  get left(): number {
    return Math.max(0, this.#until - this.clock.monotonic());
  }

  /**
   * Wait until the next attempt is due.
   *
   * @param leastMs what the other side has asked for
   * @param growsToMs up to what that doubles from each such pause to the next; 0: it stays
   * @param tookMs how long it took to fail, which is part of the pause: nothing is said to a way that is back between a try that has given it up and the next
   */
  async pause(leastMs = 0, growsToMs = 0, tookMs = 0): Promise<void> {
    const wake = new WakeWatch(this.clock);
    const least = growsToMs === 0 ? leastMs : Math.min(growsToMs, leastMs * 2 ** this.#grown);
    this.#grown = growsToMs === 0 ? 0 : this.#grown + 1;
    this.#until = this.clock.monotonic() + Math.max(least, this.#backoff.next() - tookMs);
    while (this.left > 0) {
      const step = Math.min(LOOK_MS, this.left);
      await new Promise<void>((resolve) => {
        const cancel = this.timers.after(step, resolve);
        this.#goOn = () => {
          cancel();
          resolve();
        };
      });
      if (wake.hasSlept(step)) this.hurry();
    }
    this.#goOn = () => undefined;
  }

  /** The next attempt is made now. */
  hurry(): void {
    this.#backoff.reset();
    this.#grown = 0;
    this.#until = Number.NEGATIVE_INFINITY;
    this.#goOn();
  }

  /** Something was there for so long. */
  lasted(ms: number): void {
    if (ms < LASTED_MS) return;
    this.#backoff.reset();
    this.#grown = 0;
  }
}
