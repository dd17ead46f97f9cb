import type { Clock } from "../../../src/lib/waiting/clock.ts";
import type { Timers } from "../../../src/lib/waiting/timers.ts";

/** Long enough for a few round trips over sockets of this process, however seldom it has its turn. */
export async function aMoment(): Promise<void> {
  await Bun.sleep(10);
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Time that goes on when the test says so. */
export class FakeTime implements Clock, Timers {
  #wall = Date.parse("2026-01-01T00:00:00Z");
  #monotonic = 1_000;
  #timers: { readonly at: number; readonly run: () => void }[] = [];

  /** @param settle called after each step, for what takes real time */
  constructor(private readonly settle: () => Promise<void> = aMoment) {}

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#monotonic + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Both clocks go on, and what is due in between runs at its time. */
  async pass(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > end) break;
      // One that was due while the machine slept fires now.
      const step = Math.max(0, next.at - this.#monotonic);
      this.#wall += step;
      this.#monotonic += step;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      next.run();
      await this.settle();
    }
    this.#wall += end - this.#monotonic;
    this.#monotonic = end;
    await this.settle();
  }

  /** The machine sleeps: the wall clock goes on, timers fire when it wakes. The monotonic clock may or may not have gone on. */
  async sleep(ms: number, monotonicToo: boolean): Promise<void> {
    this.#wall += ms;
    if (monotonicToo) this.#monotonic += ms;
    await this.pass(1_000);
  }
}
