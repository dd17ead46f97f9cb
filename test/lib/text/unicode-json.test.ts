import { expect, test } from "bun:test";
import { inUnicode } from "../../../src/lib/text/unicode-json.ts";

test("lone halves of surrogate pairs become U+FFFD wherever they stand, and everything else stays", () => {
  const given = { "k\ud800": ["\udc00", "a\ud83d", "\ud83d\ude00", "\\ud800", "\\\ud800", String.raw`C:\ude00`], n: 1, nothing: null };
  expect(inUnicode(given)).toEqual({
    "k\uFFFD": ["\uFFFD", "a\uFFFD", "\ud83d\ude00", "\\ud800", "\\\uFFFD", String.raw`C:\ude00`],
    n: 1,
    nothing: null,
  } as never);
});

test("what has none is the same value, and so is what is no JSON", () => {
  for (const value of [{ a: "\ud83d\ude00", b: "\\ud800" }, "text", undefined, null, 5]) expect(inUnicode(value)).toBe(value as never);
});
