import { describe, expect, test } from "bun:test";
import { type Result, ratioOf, reached, type Target } from "../../bench/row.ts";
import { readable, table } from "../../bench/table.ts";

const result = (ours: number, target: Target | null, yardstick: number | null = 10): Result => ({
  name: "row",
  unit: "ms",
  yardstick: yardstick === null ? null : { name: "bare", value: yardstick },
  ours,
  target,
});

describe("reached", () => {
  test.each([
    [{ ratioAtLeast: 0.5 }, 5, 4.9],
    [{ ratioAtMost: 6 }, 60, 61],
    [{ ratioAtMost: 6, atMost: 50 }, 50, 51],
    [{ overYardstickAtMost: 15 }, 25, 25.1],
    [{ atMost: 30 }, 30, 31],
    [{ atLeast: 30 }, 30, 29],
  ] satisfies [Target, number, number][])("%j holds at %d and not at %d", (target, good, bad) => {
    expect(reached(result(good, target))).toBe(true);
    expect(reached(result(bad, target))).toBe(false);
  });

  test("nothing is reached by what is no number, or without the yardstick it needs", () => {
    expect(reached(result(Number.NaN, { atMost: 30 }))).toBe(false);
    expect(reached(result(1, { ratioAtLeast: 0.5 }, null))).toBe(false);
    expect(reached(result(1, { ratioAtMost: 6 }, null))).toBe(false);
    expect(reached(result(1, { overYardstickAtMost: 6 }, null))).toBe(false);
  });

  test("a line without a target only informs", () => {
    expect(reached(result(1, null))).toBeNull();
  });
});

test("ratioOf is ours by the yardstick's", () => {
  expect(ratioOf(result(5, null))).toBe(0.5);
  expect(ratioOf(result(5, null, null))).toBeNull();
});

test("readable", () => {
  expect([0.01234, 1.5, 99.95, 12_345.6, Number.NaN].map(readable)).toEqual(["0.0123", "1.50", "100", "12,346", "NaN"]);
});

test("the table shows absolute numbers, ratio, target and verdict", () => {
  const lines = table([result(5, { ratioAtLeast: 0.6 }), result(20, { atMost: 30 }, null)]);
  expect(lines.map((line) => line.split("|").map((cell) => cell.trim()))).toEqual([
    ["", "what", "yardstick", "ours", "ratio", "target", "reached", ""],
    expect.arrayContaining(["----------------"]) as unknown as string[],
    ["", "row", "10.0 ms (bare)", "5.00 ms", "0.50", "ratio >= 0.6", "NO", ""],
    ["", "row", "", "20.0 ms", "", "<= 30.0 ms", "yes", ""],
  ]);
});
