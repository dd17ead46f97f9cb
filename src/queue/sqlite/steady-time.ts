import type { Clock } from "../../lib/waiting/clock.ts";

/**
 * Wall-clock time that never steps: the wall clock once, and from then on the monotonic clock. Leases and delays are measured in it, so
 * setting the clock neither expires nor prolongs one.
 */
export class SteadyTime {
  readonly #offset: number;

  constructor(private readonly clock: Clock) {
    this.#offset = clock.now() - clock.monotonic();
  }

  /** Milliseconds since the epoch. */
  now(): number {
    return this.#offset + this.clock.monotonic();
  }

  /** The instant `milliseconds` from now, as a record carries it. */
  in(milliseconds: number): string {
    return new Date(this.now() + milliseconds).toISOString();
  }
}
