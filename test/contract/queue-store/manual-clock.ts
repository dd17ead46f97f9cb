import type { Clock } from "../../../src/lib/waiting/clock.ts";

/** A clock that stands still until it is told otherwise, and whose wall clock can be set. */
export class ManualClock implements Clock {
  #wall = Date.parse("2030-01-01T00:00:00.000Z");
  #monotonic = 1_000_000;

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** Time passes. */
  advance(ms: number): void {
    this.#wall += ms;
    this.#monotonic += ms;
  }

  /** Somebody sets the wall clock. */
  step(ms: number): void {
    this.#wall += ms;
  }
}
