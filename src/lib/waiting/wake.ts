import type { Clock } from "./clock.ts";

/** How late a look may be, or the clocks may go apart, before the machine is taken to have slept; milliseconds. */
export const SLEPT_MS = 5_000;

/**
 * Tells from the clocks whether the machine has slept. The monotonic one may stop meanwhile, and the wall clock goes on; or both go on, and the timer is
 * late.
 */
export class WakeWatch {
  #seen: { readonly wall: number; readonly monotonic: number };

  constructor(
    private readonly clock: Clock,
    private readonly sleptMs = SLEPT_MS,
  ) {
    this.#seen = this.#now();
  }

  #now(): { wall: number; monotonic: number } {
    return { wall: this.clock.now(), monotonic: this.clock.monotonic() };
  }

  /** @param dueMs how long after the last look this one was to be */
  hasSlept(dueMs: number): boolean {
    const now = this.#now();
    const wall = now.wall - this.#seen.wall;
    const monotonic = now.monotonic - this.#seen.monotonic;
    this.#seen = now;
    return monotonic - dueMs > this.sleptMs || Math.abs(wall - monotonic) > this.sleptMs;
  }
}
