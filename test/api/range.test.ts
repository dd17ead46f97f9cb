import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { conditionsOf, contentHeaders, matchesEtag, parseRange, wantedOf } from "../../src/api/range.ts";
import { isRelayError } from "../../src/domain/errors.ts";

describe("parseRange", () => {
  test.each([
    ["bytes=0-0", 10, { start: 0, end: 1 }],
    ["bytes=0-", 10, { start: 0, end: 10 }],
    ["bytes=3-5", 10, { start: 3, end: 6 }],
    ["bytes=5-99", 10, { start: 5, end: 10 }],
    ["bytes=-4", 10, { start: 6, end: 10 }],
    ["bytes=-40", 10, { start: 0, end: 10 }],
    ["Bytes=0-1", 10, { start: 0, end: 2 }],
    ["bytes=0-0, ,", 10, { start: 0, end: 1 }],
    ["bytes= 3-5 ", 10, { start: 3, end: 6 }],
    [`bytes=2-${"9".repeat(400)}`, 10, { start: 2, end: 10 }],
    [`bytes=-${"9".repeat(400)}`, 10, { start: 0, end: 10 }],
  ])("%s of %d bytes", (header, size, expected) => {
    expect(parseRange(header, size)).toEqual(expected);
  });

  test.each([
    undefined,
    "",
    "bytes",
    "bytes=",
    "bytes=-",
    "bytes=--1",
    "bytes=1--2",
    "bytes=1-2-3",
    "bytes=+1-2",
    "bytes=0x0-1",
    "bytes=1.0-2",
    "bytes =0-1",
    "bytes:0-1",
    "items=0-1",
    "bytes=0-1,4-5",
    "bytes=0-1,bytes=4-5",
    "bytes=a-b",
    "bytes=5-3",
    "bytes=-1,-2",
    "bytes=\u0660-\u0661",
  ])("%p asks for no range that is understood", (header) => {
    expect(parseRange(header, 10)).toBeNull();
  });

  test("the end of nothing is nothing", () => {
    expect(parseRange("bytes=-5", 0)).toBeNull();
    expect(
      isRelayError(
        thrownBy(() => parseRange("bytes=0-", 0)),
        "range_not_satisfiable",
      ),
    ).toBe(true);
  });

  test.each(["bytes=10-", "bytes=10-20", "bytes=-0", `bytes=${"9".repeat(40)}-`])("%s of 10 bytes cannot be satisfied", (header) => {
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

test("a Range is one of a GET only", () => {
  const conditions = (method: string) =>
    conditionsOf(new Request("http://relay/", { method, headers: { range: "bytes=0-1", "if-match": "*" } }));
  expect([conditions("GET")("range"), conditions("HEAD")("range"), conditions("HEAD")("if-match"), conditions("GET")("etag")]).toEqual([
    "bytes=0-1",
    undefined,
    "*",
    undefined,
  ]);
});

describe("conditions of a request", () => {
  const wanted = (headers: Record<string, string>, etag: string | null = '"e"') => wantedOf((name) => headers[name], 10, etag);
  const PART = { start: 2, end: 5 };

  test.each([
    [{}, null],
    [{ range: "bytes=2-4" }, PART],
    [{ range: "bytes=2-4", "if-range": '"e"' }, PART],
    [{ range: "bytes=2-4", "if-range": '"other"' }, null],
    [{ range: "bytes=2-4", "if-range": 'W/"e"' }, null],
    [{ range: "bytes=2-4", "if-range": "Wed, 21 Oct 2015 07:28:00 GMT" }, null],
    [{ range: "bytes=99-", "if-range": '"other"' }, null],
    [{ "if-match": '"x", "e"', range: "bytes=2-4" }, PART],
    [{ "if-match": "*" }, null],
    [{ "if-none-match": '"e"', range: "bytes=2-4" }, "unchanged"],
    [{ "if-none-match": '"other"' }, null],
  ] as const)("%p", (headers, expected) => {
    expect(wanted(headers)).toEqual(expected);
  });

  test.each([{ "if-match": '"x"' }, { "if-match": 'W/"e"' }, { "if-match": "" }, { "if-match": '"x"', "if-none-match": '"e"' }])(
    "%p is not met",
    (headers) => {
      expect(thrownBy(() => wanted(headers))).toMatchObject({ code: "precondition_failed", data: { etag: '"e"' } });
    },
  );

  test("content that still changes has no tag that would do", () => {
    expect(wanted({ range: "bytes=2-4", "if-range": '"e"' }, null)).toBeNull();
    expect(wanted({ "if-none-match": "*" }, null)).toBeNull();
    expect(thrownBy(() => wanted({ "if-match": '"e"' }, null))).toMatchObject({ code: "precondition_failed" });
  });
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
