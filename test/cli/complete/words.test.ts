import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { bashQuoted, bashWords, shellWords } from "../../../src/cli/complete/words.ts";

/** COMP_WORDBREAKS as bash has it from the start. */
const BREAKS = " \t\n\"'><=;|&(:";

/** Characters that shells treat in ways of their own, and some that they do not. */
const character = fc.constantFrom(..."ab-=:$`\"'\\ !*?[]{}()<>;|&#~%@,./\t\né✓".split(""));
const word = fc.string({ unit: character, minLength: 0, maxLength: 12 });

const inSingle = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const inDouble = (text: string): string => `"${text.replace(/[\\"$`]/g, "\\$&")}"`;
const STYLES: readonly ((text: string) => string)[] = [inSingle, inDouble, bashQuoted];
/** A word as somebody may have typed it: in pieces, each quoted in a way of its own. */
const typed = fc.array(fc.tuple(word, fc.constantFrom(...STYLES)), { minLength: 1, maxLength: 3 }).map((pieces) => ({
  value: pieces.map(([text]) => text).join(""),
  text: pieces.map(([text, style]) => (text === "" ? "''" : style(text))).join(""),
}));

/** What bash makes of the words of a line. */
function byBash(lines: readonly string[]): string[][] {
  const script = `f() { printf '%s\\0' "$#" "$@"; }\n${lines.map((line) => `f ${line}`).join("\n")}\n`;
  const { stdout, status } = spawnSync("bash", ["--norc", "+H", "-c", script], { env: { LC_ALL: "C.UTF-8" }, maxBuffer: 64 * 1024 * 1024 });
  expect(status).toBe(0);
  const fields = stdout.toString("utf8").split("\0");
  const found: string[][] = [];
  for (let at = 0; at < fields.length - 1; ) {
    const count = Number(fields[at]);
    found.push(fields.slice(at + 1, at + 1 + count));
    at += 1 + count;
  }
  return found;
}

describe("a line of bash", () => {
  test("has the words that bash sees in it, however they are quoted", () => {
    const cases = fc.sample(fc.array(typed, { minLength: 1, maxLength: 4 }), 400);
    const lines = cases.map((words) => words.map(({ text }) => text).join(" "));
    const seen = byBash(lines);
    expect(seen.length).toBe(cases.length);
    for (const [at, line] of lines.entries()) {
      expect([line, seen[at]]).toEqual([line, cases[at]!.map(({ value }) => value)]);
      expect([line, bashWords(`clio-relay ${line} `, BREAKS).words]).toEqual([line, seen[at]!]);
      const { words, current } = bashWords(`clio-relay ${line}`, BREAKS);
      expect([line, [...words, current]]).toEqual([line, seen[at]!]);
    }
  });

  test("a word that is quoted is one word on one line to bash", () => {
    const words = fc.sample(
      fc.string({ unit: fc.oneof(character, fc.constantFrom("\u0001", "\u001b", "\u007f", "\r")), minLength: 1, maxLength: 20 }),
      400,
    );
    const lines = words.map(bashQuoted);
    for (const line of lines) expect(line).not.toMatch(/[\n\r]/);
    expect(byBash(lines)).toEqual(words.map((one) => [one]));
  });

  test.each([
    ["clio-relay job list --state=qu", "--state=qu", "--state=".length, false],
    ["clio-relay job list --state qu", "qu", 0, false],
    ["clio-relay worker keys revoke SHA256:ab", "SHA256:ab", "SHA256:".length, false],
    ['clio-relay job submit --script "a b', "a b", 0, true],
    ["clio-relay job submit --script='a b", "--script=a b", "--script=".length, true],
    ["clio-relay job submit --script a\\:b", "a:b", 0, false],
    ["clio-relay job status ", "", 0, false],
    ["clio-relay", "clio-relay", 0, false],
  ])("%s: only what follows the last break is replaced", (line, current, kept, quoted) => {
    expect(bashWords(line, BREAKS)).toMatchObject({ current, kept, quoted, redirected: false });
  });

  test("a redirection is no word, and where it leads is a file", () => {
    expect(bashWords("clio-relay worker configure < in", BREAKS)).toMatchObject({
      words: ["worker", "configure"],
      current: "in",
      redirected: true,
    });
    expect(bashWords("clio-relay job list 2>err >> 'o ut' --js", BREAKS)).toMatchObject({
      words: ["job", "list"],
      current: "--js",
      redirected: false,
    });
    expect(bashWords("clio-relay job list --limit 2>", BREAKS)).toMatchObject({
      words: ["job", "list", "--limit"],
      current: "",
      redirected: true,
    });
  });

  test("other breaks, other places", () => {
    expect(bashWords("clio-relay job list --state=qu", " \t\n")).toMatchObject({ current: "--state=qu", kept: 0 });
    expect(bashWords("clio-relay job list --state=qu", "")).toMatchObject({ current: "--state=qu", kept: 0 });
  });
});

test("words of a shell that takes its line apart itself", () => {
  expect(shellWords(["job", "list", "--st"])).toEqual({
    words: ["job", "list"],
    current: "--st",
    kept: 0,
    quoted: false,
    redirected: false,
  });
  expect(shellWords([])).toMatchObject({ words: [], current: "" });
});
