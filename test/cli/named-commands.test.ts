import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { spellingsOf, takesValue } from "../../src/cli/arguments.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import type { Flag } from "../../src/cli/verb.ts";

const SOURCE = path.resolve(import.meta.dir, "../../src");

/** A place holder, what is put in, or one of the clusters of examples. */
const isPlaceholder = (word: string): boolean => /^(?:[A-Z…'~]|\d|<>|(?:local|c)$)/.test(word);

/** Whether a word may be the value of an option: a place holder, or one of the words that it takes. */
function isValue(word: string | undefined, flag: Flag): boolean {
  const suggests = "reader" in flag ? flag.reader.suggests : null;
  return word !== undefined && (isPlaceholder(word) || (Array.isArray(suggests) && suggests.includes(word)));
}

/** What is wrong with a command line as a text of ours names it; it ends where the sentence goes on. */
async function problemOf(words: readonly string[]): Promise<string | null> {
  const length = [3, 2, 1].find((n) => loadable(words.slice(0, n)) !== undefined);
  if (length === undefined) return null;
  const { verb } = await loadable(words.slice(0, length))!.load();
  const known = spellingsOf(verb);
  for (let at = length; at < words.length; at++) {
    const word = words[at]!;
    if (word === "--" || !(word.startsWith("--") || isPlaceholder(word))) return null;
    if (!word.startsWith("--")) continue;
    const flag = known.get(word.split("=")[0]!)?.[1];
    if (flag === undefined) return `there is no ${word}`;
    if (!takesValue(flag) || word.includes("=")) continue;
    if (!isValue(words[++at], flag)) return `${word} needs a value`;
  }
  return null;
}

function loadable(words: readonly string[]) {
  const noun = words.slice(0, -1).join(" ");
  return Object.hasOwn(COMMANDS, noun) ? COMMANDS[noun]?.[words.at(-1)!] : undefined;
}

/** What is put into a text stands for a value. */
function withoutNested(text: string): string {
  const outer = text.replaceAll(/\$\{[^{}]*\}/g, "<>");
  return outer === text ? text : withoutNested(outer);
}

/** Every command line that a text of the source names. */
function* named(): Generator<readonly [file: string, line: string]> {
  for (const file of new Bun.Glob("**/*.ts").scanSync({ cwd: SOURCE })) {
    const text = withoutNested(fs.readFileSync(path.join(SOURCE, file), "utf8")).replaceAll(/^\s*(?:\/\/|\*|\/\*\*).*$/gm, "");
    for (const [, line] of text.matchAll(/\bclio-relay ((?:[a-z][\w-]*|--[\w-]+(?:=\S+)?|[A-Z][\w:]*|<>|…|\d+|'[^']*'| )+)/g))
      yield [file, line!.trim()];
  }
}

test("a command that a text of ours names can be given so: its options are there, and have the values that they need", async () => {
  const wrong: string[] = [];
  let count = 0;
  for (const [file, line] of named()) {
    count++;
    const problem = await problemOf(line.split(/ +/));
    if (problem !== null) wrong.push(`${file}: clio-relay ${line}: ${problem}`);
  }
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(100);
});
