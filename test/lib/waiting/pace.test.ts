import { expect, test } from "bun:test";
import { Pace } from "../../../src/lib/waiting/pace.ts";
import { WakeWatch } from "../../../src/lib/waiting/wake.ts";

/** Time that a test turns on by hand. */
class Hand {
  wall = 1_000_000;
  mono = 0;
  readonly waiting: { readonly at: number; readonly run: () => void }[] = [];
  readonly clock = { now: () => this.wall, monotonic: () => this.mono };
  readonly timers = {
    after: (ms: number, run: () => void) => {
      const one = { at: this.mono + ms, run };
      this.waiting.push(one);
      return () => void this.waiting.splice(this.waiting.indexOf(one), 1);
    },
  };

  /** Run what is due up to the end, each at its time. */
  async pass(ms: number): Promise<void> {
    const end = this.mono + ms;
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    for (;;) {
      const next = this.waiting.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.waiting.splice(this.waiting.indexOf(next), 1);
      this.wall += next.at - this.mono;
      this.mono = next.at;
      next.run();
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
    this.wall += end - this.mono;
    this.mono = end;
  }
}

const over = (promise: Promise<void>): { done: boolean } => {
  const state = { done: false };
  void promise.then(() => {
    state.done = true;
  });
  return state;
};

test("pauses double up to 5 s, each at least half of it; what has lasted lets them begin anew", async () => {
  for (const [random, part] of [
    [0, 1],
    [1, 0.5],
  ] as const) {
    const hand = new Hand();
    const pace = new Pace(hand.clock, hand.timers, () => random);
    const pauses: number[] = [];
    const measure = async (): Promise<void> => {
      const began = hand.mono;
      let ended = -1;
      void pace.pause().then(() => {
        ended = hand.mono;
      });
      expect(pace.left).toBeGreaterThan(0);
      await hand.pass(10_000);
      pauses.push(ended - began);
    };
    for (let turn = 0; turn < 8; turn++) await measure();
    pace.lasted(29_999);
    await measure();
    pace.lasted(30_000);
    await measure();
    expect(pauses).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000, 100].map((ms) => ms * part));
  }
});

test("the other side's least is kept, unless somebody wants it now", async () => {
  const hand = new Hand();
  const pace = new Pace(hand.clock, hand.timers, () => 0);
  const pause = over(pace.pause(60_000));
  await hand.pass(59_000);
  expect(pause.done).toBe(false);
  await hand.pass(1_000);
  expect(pause.done).toBe(true);
  const hurried = over(pace.pause(60_000));
  await hand.pass(100);
  pace.hurry();
  expect(pace.left).toBe(0);
  await hand.pass(0);
  expect(hurried.done).toBe(true);
  // And the next one begins anew.
  const next = over(pace.pause());
  await hand.pass(100);
  expect(next.done).toBe(true);
});

test("how long a try took to fail is part of the pause, and of nothing that the other side has asked for", async () => {
  const hand = new Hand();
  const pace = new Pace(hand.clock, hand.timers, () => 0);
  const left: number[] = [];
  for (const [least, took] of [
    [0, 60],
    [0, 5_000],
    [1_000, 5_000],
  ] as const) {
    const pause = over(pace.pause(least, 0, took));
    left.push(pace.left);
    await hand.pass(1_000);
    expect(pause.done).toBe(true);
  }
  expect(left).toEqual([40, 0, 1_000]);
});

test("a machine that wakes up does not wait for the rest", async () => {
  const hand = new Hand();
  const pace = new Pace(hand.clock, hand.timers, () => 0);
  const pause = over(pace.pause(60_000));
  await hand.pass(2_500);
  hand.wall += 3_600_000;
  await hand.pass(600);
  expect(pause.done).toBe(true);
});

test("a wake-up is a wall clock that went on, or a look that came late; a clock that is set back counts, too", () => {
  const hand = new Hand();
  const wake = new WakeWatch(hand.clock, 5_000);
  const look = (wall: number, mono: number): boolean => {
    hand.wall += wall;
    hand.mono += mono;
    return wake.hasSlept(1_000);
  };
  expect(look(1_000, 1_000)).toBe(false);
  expect(look(60_000, 1_000)).toBe(true);
  expect(look(1_000, 1_000)).toBe(false);
  expect(look(7_000, 7_000)).toBe(true);
  expect(look(-60_000, 1_000)).toBe(true);
});

test("a pause that grows doubles from one to the next up to its bound, and begins anew like the others", async () => {
  const hand = new Hand();
  const pace = new Pace(hand.clock, hand.timers, () => 0);
  const lefts: number[] = [];
  for (const lasts of [0, 0, 0, 0, 60_000, 0]) {
    pace.lasted(lasts);
    const paused = pace.pause(10_000, 60_000);
    lefts.push(pace.left);
    await hand.pass(60_000);
    await paused;
  }
  expect(lefts).toEqual([10_000, 20_000, 40_000, 60_000, 10_000, 20_000]);
});
