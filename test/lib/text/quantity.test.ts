import { expect, test } from "bun:test";
import { nearest } from "../../../src/lib/text/nearest.ts";
import {
  parseBytes,
  parseDecimal,
  parseDuration,
  parseMemory,
  parseWallTime,
  parseWhole,
  wallTimeText,
} from "../../../src/lib/text/quantity.ts";

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

test.each([
  ["01:00:00", 3_600],
  ["1:2:3", 3_723],
  ["30", 1_800],
  ["30:15", 1_815],
  ["90:00", 5_400],
  ["1-12", 129_600],
  ["1-12:30", 131_400],
  ["2-00:00:30", 172_830],
  ["48:00:00", 172_800],
  ["2h", 7_200],
  ["45s", 45],
  ["1.5m", 90],
  ["0.5s", 1],
  ["0", null],
  ["00:00:00", null],
  ["-1", null],
  ["1-", null],
  ["1:2:3:4", null],
  ["1:123", null],
  ["UNLIMITED", null],
  ["1:00 ", null],
  ["", null],
  ["1-2h", null],
])("wall time %s", (text, seconds) => {
  expect(parseWallTime(text)).toBe(seconds);
});

test("a wall time is written as it is read", () => {
  for (const seconds of [1, 59, 3_600, 86_399, 86_400, 8 * 86_400 + 3_723]) expect(parseWallTime(wallTimeText(seconds))).toBe(seconds);
  expect(wallTimeText(93_784)).toBe("1-02:03:04");
});

test.each([
  ["4G", 4 * 2 ** 30],
  ["512M", 2 ** 29],
  ["512m", 2 ** 29],
  ["100K", 102_400],
  ["1T", 2 ** 40],
  ["4000", 4_000 * 2 ** 20],
  ["2GiB", 2 ** 31],
  ["0", null],
  ["4GB", null],
  ["4 G", null],
  ["1.5G", null],
  ["-4G", null],
  ["9999999999999999T", null],
  ["", null],
])("memory %s", (text, bytes) => {
  expect(parseMemory(text)).toBe(bytes);
});
