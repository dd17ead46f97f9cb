import { describe, expect, test } from "bun:test";
import { type Carrier, type CarrierSink, DEAF } from "../../../src/roles/sockets/carrier.ts";
import { Splice } from "../../../src/roles/sockets/splice.ts";
import { ENOUGH, Turns } from "../../../src/roles/sockets/turns.ts";
import { eventually } from "../../runner/wait.ts";

/** A carrier that takes as much as it is told to. */
class Slow implements Carrier {
  sink: CarrierSink = DEAF;
  waiting = 0;
  reads = true;
  /** Told when it is read again. */
  onResume: () => void = () => undefined;

  write(bytes: Buffer): void {
    this.waiting += bytes.length;
  }
  pause(): void {
    this.reads = false;
  }
  resume(): void {
    this.reads = true;
    this.onResume();
  }
  end(): void {}
  destroy(): void {}

  /** Everything that waits is taken. */
  take(): void {
    this.waiting = 0;
    this.sink.drain();
  }
}

const READ = Buffer.alloc(512 * 1024);
/** As many pairs as hold enough for all together. */
const PAIRS = Math.ceil(ENOUGH / READ.length);

function joined(pairs: number, now: () => number) {
  const splices: Splice[] = [];
  const turns = new Turns(() => splices.reduce((sum, { heldShortly }) => sum + heldShortly, 0), now);
  const sides = Array.from({ length: pairs }, () => {
    const pair = { from: new Slow(), to: new Slow() };
    splices.push(new Splice([pair.from, pair.to], now, () => undefined, { turns }));
    return pair;
  });
  return sides;
}

describe("sources take turns where much is held for all together", () => {
  test("whoever is alone goes on at once", () => {
    const [pair] = joined(1, () => 0);
    pair!.from.sink.data(READ);
    expect(pair!.from.reads).toBe(false);
    pair!.to.take();
    expect(pair!.from.reads).toBe(true);
  });

  test("one that comes while others hold enough goes on when they hold less, in the order in which they came", async () => {
    let now = 0;
    const sides = joined(PAIRS + 2, () => now);
    for (const { from } of sides) from.sink.data(READ);
    now = 500;
    const order: number[] = [];
    for (const [at, { from }] of sides.entries()) {
      // It brings as much again.
      from.onResume = () => {
        order.push(at);
        from.sink.data(READ);
      };
    }
    sides[1]!.to.take();
    sides[0]!.to.take();
    expect(order).toEqual([]);
    for (const at of [2, 3]) sides[at]!.to.take();
    await eventually(() => order.length === 2);
    // Enough is held again.
    expect(order).toEqual([1, 0]);
    for (const at of [4, 5]) sides[at]!.to.take();
    await eventually(() => order.length === 4);
    expect(order).toEqual([1, 0, 2, 3]);
  });

  test("as soon as enough is held, nobody is read who said much lately, or has just come; the others come in turns", async () => {
    let now = 0;
    const sides = joined(3 * PAIRS, () => now);
    const held = (): number => sides.reduce((sum, { to }) => sum + to.waiting, 0);
    // All of them have something to say in one round of the event loop.
    const round = (): void => {
      for (const { from } of sides) if (from.reads) from.sink.data(READ);
    };
    round();
    expect(held()).toBeGreaterThanOrEqual(ENOUGH);
    expect(held()).toBeLessThan(ENOUGH + READ.length);
    expect(sides.some(({ from }) => from.reads)).toBe(false);
    now = 50;
    // As some take, those who brought nothing yet go on, and bring as much.
    const silent = sides.filter(({ to }) => to.waiting === 0);
    for (const { to } of sides) if (to.waiting > 0) to.take();
    await eventually(() => silent.every(({ from }) => from.reads));
    round();
    expect(held()).toBeGreaterThanOrEqual(ENOUGH);
    expect(held()).toBeLessThan(ENOUGH + READ.length);
    expect(sides.some(({ from }) => from.reads)).toBe(false);
  });

  test("whoever has just come is held up for a moment, and before those whose bytes had to wait", async () => {
    let now = 0;
    const sides = joined(PAIRS + 2, () => now);
    const [first, last, ...crowd] = sides;
    for (const { from } of crowd) from.sink.data(READ);
    expect([first, last].map((side) => side!.from.reads)).toEqual([false, false]);
    // They said nothing before: a tenth of a second is what they wait at the most, whatever is held.
    now = 100;
    await eventually(() => first!.from.reads && last!.from.reads);
    last!.from.sink.data(READ);
    expect(first!.from.reads).toBe(false);
    now = 190;
    last!.to.take();
    now = 200;
    await eventually(() => first!.from.reads);
    expect(last!.from.reads).toBe(false);
  });

  test("who has said nothing for long, or little at a time, is not held up by others", () => {
    let now = 0;
    const sides = joined(PAIRS + 2, () => now);
    const [idle, talks, ...others] = sides;
    now = 60_000;
    talks!.from.sink.data(Buffer.alloc(1_000));
    for (const { from } of others) from.sink.data(READ);
    expect([idle, talks].map((side) => side!.from.reads)).toEqual([true, true]);
  });

  test("those who take nothing keep nobody from going on", async () => {
    let now = 0;
    const sides = joined(PAIRS + 1, () => now);
    for (const { from } of sides) from.sink.data(READ);
    const last = sides.at(-1)!;
    now = 5_000;
    last.to.take();
    expect(last.from.reads).toBe(false);
    // What they hold counts for ten seconds.
    now = 10_001;
    await eventually(() => last.from.reads);
    last.from.sink.data(READ);
    now = 10_500;
    last.to.take();
    expect(last.from.reads).toBe(true);
  });

  test("and those who take slowly for no longer than one's own bytes had to wait", async () => {
    let now = 0;
    const sides = joined(PAIRS + 2, () => now);
    for (const { from } of sides) from.sink.data(READ);
    now = 400;
    sides[0]!.to.take();
    now = 799;
    // They have just held back anew.
    for (const { from, to } of sides.slice(1)) {
      to.waiting = 0;
      from.sink.data(READ);
    }
    expect(sides[0]!.from.reads).toBe(false);
    now = 800;
    await eventually(() => sides[0]!.from.reads);
    expect(sides.slice(1).some(({ from }) => from.reads)).toBe(false);
  });
});
