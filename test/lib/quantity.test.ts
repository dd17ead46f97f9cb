import { expect, test } from "bun:test";
import { nearest } from "../../src/lib/nearest.ts";
import { parseBytes, parseDecimal, parseDuration, parseWhole } from "../../src/lib/quantity.ts";

test.each([
  ["45s", 45],
  ["30m", 1_800],
  ["2h", 7_200],
  ["1d", 86_400],
  ["90", 90],
  ["0.5", 0.5],
  ["1.5m", 90],
  ["0", null],
  ["0s", null],
  ["-1", null],
  ["1h30m", null],
  ["1 h", null],
  ["h", null],
  ["", null],
  ["1e3", null],
  ["999999999999d", null],
])("duration %s", (text, seconds) => {
  expect(parseDuration(text)).toBe(seconds);
});

test.each([
  ["0", 0],
  ["65536", 65_536],
  ["4KiB", 4_096],
  ["2GiB", 2 ** 31],
  ["4K", null],
  ["4 KiB", null],
  ["1.5MiB", null],
  ["9007199254740993", null],
  ["9999999999999TiB", null],
  ["", null],
])("bytes %s", (text, bytes) => {
  expect(parseBytes(text)).toBe(bytes);
});

test("whole and decimal numbers are decimal digits and nothing else", () => {
  expect(["7", "007", "-7", "7.0", "0x7", " 7", "", "7e0", "99999999999999999"].map(parseWhole)).toEqual([
    7,
    7,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
  ]);
  expect(["-2.5", ".5", "5.", "1e3", "NaN", "Infinity", "0x10", "1,5", ""].map(parseDecimal)).toEqual([
    -2.5,
    0.5,
    5,
    1_000,
    null,
    null,
    null,
    null,
    null,
  ]);
});

test("the nearest name is a slip of the hand away, or nobody's", () => {
  const known = ["submit", "status", "watch", "wait", "read-log", "list"];
  expect(nearest("sumbit", known)).toBe("submit");
  expect(nearest("stat", known)).toBe("status");
  expect(nearest("lst", known)).toBe("list");
  expect(nearest("read_log", known)).toBe("read-log");
  expect(nearest("wach", known)).toBe("watch");
  expect(nearest("deploy", known)).toBeNull();
  expect(nearest("x", known)).toBeNull();
  expect(nearest("", known)).toBeNull();
  expect(nearest("s".repeat(10_000), known)).toBeNull();
});
