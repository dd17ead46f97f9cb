import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { contentHeaders, matchesEtag, parseRange } from "../../src/api/range.ts";
import { isRelayError } from "../../src/domain/errors.ts";

describe("parseRange", () => {
  test.each([
    ["bytes=0-0", 10, { start: 0, end: 1 }],
    ["bytes=0-", 10, { start: 0, end: 10 }],
    ["bytes=3-5", 10, { start: 3, end: 6 }],
    ["bytes=5-99", 10, { start: 5, end: 10 }],
    ["bytes=-4", 10, { start: 6, end: 10 }],
    ["bytes=-40", 10, { start: 0, end: 10 }],
  ])("%s of %d bytes", (header, size, expected) => {
    expect(parseRange(header, size)).toEqual(expected);
  });

  test.each([undefined, "", "bytes=", "bytes=-", "items=0-1", "bytes=0-1,4-5", "bytes=a-b", "bytes=5-3", `bytes=${"9".repeat(40)}-`])(
    "%p asks for no range that is understood",
    (header) => {
      expect(parseRange(header, 10)).toBeNull();
    },
  );

  test.each(["bytes=10-", "bytes=10-20", "bytes=-0"])("%s of 10 bytes cannot be satisfied", (header) => {
    const failure = thrownBy(() => parseRange(header, 10));
    expect(isRelayError(failure, "range_not_satisfiable")).toBe(true);
  });

  test("any range that is given lies within the content", () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(120), fc.nat(120), (size, a, b) => {
        let range: ReturnType<typeof parseRange> = null;
        try {
          range = parseRange(`bytes=${a}-${b}`, size);
        } catch {
          expect(a).toBeGreaterThanOrEqual(size);
          return;
        }
        if (range === null) expect(b).toBeLessThan(a);
        else expect(0 <= range.start && range.start < range.end && range.end <= size).toBe(true);
      }),
    );
  });
});

test("an entity tag matches itself, its weak form and *", () => {
  expect(matchesEtag('"abc"', '"abc"')).toBe(true);
  expect(matchesEtag('"x", W/"abc"', '"abc"')).toBe(true);
  expect(matchesEtag("*", '"abc"')).toBe(true);
  expect(matchesEtag('"abd"', '"abc"')).toBe(false);
  expect(matchesEtag(undefined, '"abc"')).toBe(false);
});

test("headers of a part name the part and the whole", () => {
  expect(contentHeaders(10, { start: 2, end: 5 }, '"e"')).toEqual({
    "accept-ranges": "bytes",
    "content-length": "3",
    "content-range": "bytes 2-4/10",
    etag: '"e"',
  });
});

function thrownBy(fn: () => unknown): unknown {
  try {
    fn();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
