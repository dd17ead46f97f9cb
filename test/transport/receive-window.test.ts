import { describe, expect, test } from "bun:test";
import { FIRST_WINDOW, ReceiveWindow } from "../../src/transport/receive-window.ts";

function begin() {
  const given: number[] = [];
  const clock = { now: 0 };
  return {
    given,
    clock,
    window: new ReceiveWindow(
      (bytes) => given.push(bytes),
      () => clock.now,
    ),
  };
}

describe("a receiving window", () => {
  test("takes what the other side had leave for, and not a byte more", () => {
    const { window } = begin();
    expect(window.came(FIRST_WINDOW)).toBe(true);
    expect(window.came(1)).toBe(false);
  });

  test("gives leave for what has been read, in parts, and for nothing while nobody reads", () => {
    const { window, given } = begin();
    window.follow({ size: FIRST_WINDOW });
    window.came(FIRST_WINDOW);
    expect(given).toEqual([]);
    window.read(1);
    expect(given).toEqual([]);
    window.read(FIRST_WINDOW / 4);
    expect(given).toEqual([FIRST_WINDOW / 4 + 1]);
    expect(window.came(FIRST_WINDOW / 4 + 1)).toBe(true);
    expect(window.came(1)).toBe(false);
  });

  test("becomes as large, or as small, as its reader wants it", () => {
    const { window, given } = begin();
    const flow = { size: 4 * FIRST_WINDOW };
    window.follow(flow);
    window.came(1_000);
    window.read(1_000);
    expect(given).toEqual([3 * FIRST_WINDOW + 1_000]);
    flow.size = FIRST_WINDOW;
    for (let left = 3 * FIRST_WINDOW; left > 0; left -= FIRST_WINDOW) {
      window.came(FIRST_WINDOW);
      window.read(FIRST_WINDOW);
    }
    // It had leave for as much already.
    expect(given).toHaveLength(1);
    window.came(FIRST_WINDOW);
    window.read(FIRST_WINDOW);
    expect(given).toEqual([3 * FIRST_WINDOW + 1_000, FIRST_WINDOW]);
  });

  test("tells how long leave takes to be used, but not where the reader stopped meanwhile", () => {
    const { window, clock } = begin();
    const turns: number[] = [];
    window.follow({ size: FIRST_WINDOW, turned: (ms) => turns.push(ms) });
    const pass = (bytes: number, ms: number): void => {
      clock.now += ms;
      window.came(bytes);
      window.read(bytes);
    };
    pass(FIRST_WINDOW / 4, 5);
    pass(FIRST_WINDOW / 2, 10);
    expect(turns).toEqual([]);
    pass(FIRST_WINDOW / 4 + 1, 10);
    expect(turns).toEqual([20]);
    pass(FIRST_WINDOW / 2, 1_000);
    window.paused();
    pass(FIRST_WINDOW / 2, 1_000);
    expect(turns).toEqual([20, 1_010]);
  });
});
