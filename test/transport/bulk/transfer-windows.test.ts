import { describe, expect, test } from "bun:test";
import { TransferWindows } from "../../../src/transport/bulk/transfer-windows.ts";

/** A path of so many milliseconds there and back that carries so many bytes in a millisecond. */
interface Path {
  delayMs: number;
  bytesPerMs: number;
}

/** What a transfer finds on a path after so long: the window, and how long a turn takes. */
function settle(path: Path, forMs: number, windows: TransferWindows, clock: { now: number }): { window: number; turnMs: number } {
  const transfer = windows.enter();
  let turnMs = 0;
  for (const end = clock.now + forMs; clock.now < end; ) {
    // Little's law: what is under way comes within the delay, or as fast as the path carries it.
    turnMs = Math.max(path.delayMs, transfer.size / path.bytesPerMs);
    clock.now += turnMs / 4;
    transfer.turned?.(turnMs);
  }
  transfer.leave();
  return { window: windows.window, turnMs };
}

function begin() {
  const clock = { now: 0 };
  return { clock, windows: new TransferWindows(() => clock.now) };
}

const MIB = 1024 * 1024;

describe("the windows of transfers", () => {
  test("fill a long path", () => {
    const { clock, windows } = begin();
    const path = { delayMs: 50, bytesPerMs: 60_000 };
    const { window } = settle(path, 5_000, windows, clock);
    expect(window).toBeGreaterThanOrEqual(path.delayMs * path.bytesPerMs);
    expect(window).toBeLessThan(2 * path.delayMs * path.bytesPerMs);
  });

  test("let few bytes stand in the queue of a path that is short, or thin", () => {
    for (const path of [
      { delayMs: 0.5, bytesPerMs: 300_000 },
      { delayMs: 20, bytesPerMs: 1_000 },
    ]) {
      const { clock, windows } = begin();
      // The shortest turn is seen anew every ten seconds, with next to nothing in the queue.
      settle(path, 11_000, windows, clock);
      const { turnMs } = settle(path, 5_000, windows, clock);
      expect(turnMs).toBeLessThan(Math.max(10, 2 * path.delayMs + 64));
    }
  });

  test("follow a path that becomes longer", () => {
    const { clock, windows } = begin();
    settle({ delayMs: 1, bytesPerMs: 100_000 }, 5_000, windows, clock);
    const { window } = settle({ delayMs: 80, bytesPerMs: 100_000 }, 30_000, windows, clock);
    expect(window).toBeGreaterThanOrEqual(80 * 100_000 * 0.9);
  });

  test("are shared by all transfers alike, and stay within bounds", () => {
    const { clock, windows } = begin();
    const { window } = settle({ delayMs: 1_000, bytesPerMs: 10_000_000 }, 60_000, windows, clock);
    expect(window).toBe(16 * MIB);
    const transfers = Array.from({ length: 4 }, () => windows.enter());
    for (const { size } of transfers) expect(size).toBe(4 * MIB);
    for (const { leave } of transfers.slice(1)) {
      leave();
      leave();
    }
    expect(transfers[0]!.size).toBe(16 * MIB);
    const many = Array.from({ length: 2_000 }, () => windows.enter());
    expect(many[0]!.size).toBe(32 * 1024);
  });

  test("begin anew when none has been for a while", () => {
    const { clock, windows } = begin();
    settle({ delayMs: 50, bytesPerMs: 60_000 }, 5_000, windows, clock);
    const before = windows.window;
    clock.now += 5_000;
    expect(windows.enter().size).toBe(before);
    const later = begin();
    settle({ delayMs: 50, bytesPerMs: 60_000 }, 5_000, later.windows, later.clock);
    later.clock.now += 60_000;
    expect(later.windows.enter().size).toBe(256 * 1024);
  });
});

test("one that has left, with what still comes of it, is bounded as one that is there", () => {
  const { windows } = begin();
  const [left, there] = [windows.enter(), windows.enter()];
  left.leave();
  there.leave();
  expect([left.size, there.size]).toEqual([windows.window, windows.window]);
});
