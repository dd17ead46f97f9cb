import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { LinearPattern } from "../../../src/lib/text/linear-pattern.ts";
import { PatternError, type PatternFault } from "../../../src/lib/text/pattern-syntax.ts";

function faultOf(source: string): PatternFault | null {
  try {
    new LinearPattern(source);
    return null;
  } catch (error) {
    if (error instanceof PatternError) return error.fault;
    throw error;
  }
}

/** What has one meaning, put together. */
const { pattern } = fc.letrec<{ pattern: string; atom: string }>((tie) => ({
  atom: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.constantFrom(
      "a",
      "b",
      "c",
      ".",
      "\\d",
      "\\w",
      "\\W",
      "\\s",
      "[ab]",
      "[^a]",
      "[a-c0-9]",
      "[\\d_-]",
      "\\.",
      "\\x61",
      "\\u0062",
      "ü",
      "1",
      " ",
    ),
    tie("pattern").map((inner) => `(${inner})`),
    tie("pattern").map((inner) => `(?:${inner})`),
  ),
  pattern: fc
    .array(
      fc.oneof(
        {
          weight: 6,
          arbitrary: fc
            .tuple(tie("atom"), fc.constantFrom("", "", "*", "+", "?", "*?", "{2}", "{1,2}", "{0,1}?", "{2,}"))
            .map((two) => two.join("")),
        },
        { weight: 1, arbitrary: fc.constantFrom("^", "$", "\\b", "\\B", "|") },
      ),
      { maxLength: 5 },
    )
    .map((parts) => parts.join("")),
}));

describe("a pattern", () => {
  test("is found where the engine's own expressions find it", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", " ", "_", ".", "ü", "😀", "A"), maxLength: 12 });
    fc.assert(
      fc.property(pattern, text, fc.boolean(), (source, line, folded) => {
        const own = new RegExp(source, folded ? "iu" : "u");
        expect([source, line, new LinearPattern(folded ? `(?i)${source}` : source).isIn(line)]).toEqual([source, line, own.test(line)]);
      }),
      { numRuns: 1_000 },
    );
  });

  test("is looked for without going back, however it is made", () => {
    const line = `${"a".repeat(20_000)}b`;
    for (const source of [
      "(a+)+$",
      "(a|a)*c",
      "(a|aa)+$",
      "(.*)*x",
      "([a-z]+)*\\d",
      "(((a*)*)*)*$c",
      `${"a?".repeat(40)}a{40}c`,
      "(?:(?:a{1,10}){1,10}){1,9}c",
    ])
      expect([source, new LinearPattern(source).isIn(line)]).toEqual([source, false]);
    expect(new LinearPattern("(a+)+b$").isIn(line)).toBe(true);
    // Every 40 characters are a state of their own.
    let random = 1;
    const bits = Array.from({ length: 200_000 }, () => {
      random ^= random << 13;
      random ^= random >>> 17;
      random ^= random << 5;
      return random & 1 ? "a" : "b";
    }).join("");
    expect(() => new LinearPattern(`a.{40}c`).isIn(bits)).toThrow(PatternError);
  });

  test("that is none, or asks for more than that, is refused as such", () => {
    const refused: [string, PatternFault][] = [
      ["(", "invalid"],
      [")", "invalid"],
      ["[a", "invalid"],
      ["*a", "invalid"],
      ["a**", "invalid"],
      ["a{2}{3}", "invalid"],
      ["^*", "invalid"],
      ["a{3,2}", "invalid"],
      ["[b-a]", "invalid"],
      ["[a-\\d]", "invalid"],
      ["\\", "invalid"],
      ["\\q", "invalid"],
      ["\\x0", "invalid"],
      ["\\u{110000}", "invalid"],
      ["(?<1>a)", "invalid"],
      ["(?i:a)", "invalid"],
      ["(a)\\1", "unsafe"],
      ["(?<x>a)\\k<x>", "unsafe"],
      ["a(?=b)", "unsafe"],
      ["(?<!a)b", "unsafe"],
      ["a{1001}", "unsafe"],
      ["(a{1000}){1000}", "unsafe"],
      ["((((a{9}){9}){9}){9}){9}", "unsafe"],
    ];
    for (const [source, fault] of refused) expect([source, faultOf(source)]).toEqual([source, fault]);
    // Nothing, however often, is nothing.
    for (const source of ["", "((((){1000}){1000}){1000}){1000}", "(?<name>a)", "a{,2}", "a{b", "\\/\\-\\ü"]) {
      if (source === "\\/\\-\\ü") expect(faultOf(source)).toBe("invalid");
      else expect([source, faultOf(source)]).toEqual([source, null]);
    }
    expect(new LinearPattern("a{,2}").isIn("a{,2}")).toBe(true);
    expect(new LinearPattern("(?i)FEHLER: \\d+").isIn("ein fehler: 12")).toBe(true);
  });
});
