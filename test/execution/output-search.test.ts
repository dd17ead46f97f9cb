import { beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { ALTERNATIVES_MAX, EXPANDED_MAX, expandBraces } from "../../src/execution/braces.ts";
import { searchOutputs } from "../../src/execution/output-search.ts";
import { parsePathPattern } from "../../src/execution/path-pattern.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();
let base = "";
let root = "";

beforeEach(() => {
  base = fs.realpathSync(temporary());
  root = path.join(base, "work");
  fs.mkdirSync(root);
});

function files(...names: (string | Buffer)[]): void {
  for (const name of names) {
    const full = Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name as string)]);
    const slash = full.lastIndexOf(0x2f);
    fs.mkdirSync(full.subarray(0, slash), { recursive: true });
    fs.writeFileSync(full, "x");
  }
}

const search = (patterns: string[], more: { maxFiles?: number; maxEntries?: number } = {}) =>
  searchOutputs({ root, patterns, maxFiles: 100, ...more });

const names = async (...patterns: string[]): Promise<string[]> => {
  const { found, issues } = await search(patterns);
  expect(issues).toEqual([]);
  return found.map(({ name }) => name);
};

describe("patterns", () => {
  test("match as in a shell", async () => {
    files("a.dat", "b.dat", "b.txt", "out/a.dat", "out/x/b.dat", "out/x/y/c.dat", "[x]", "{", "*", ".hidden", "out/.h/d.dat");
    expect(await names("a.dat")).toEqual(["a.dat"]);
    expect(await names("*.dat")).toEqual(["a.dat", "b.dat"]);
    expect(await names("?.{dat,txt}")).toEqual(["a.dat", "b.dat", "b.txt"]);
    expect(await names("[ab].dat")).toEqual(["a.dat", "b.dat"]);
    expect(await names("[!a].dat")).toEqual(["b.dat"]);
    expect(await names("[a-b].d?t")).toEqual(["a.dat", "b.dat"]);
    expect(await names("out/*.dat")).toEqual(["out/a.dat"]);
    expect(await names("out/*/*.dat")).toEqual(["out/x/b.dat"]);
    expect(await names("**/*.dat")).toEqual(["a.dat", "b.dat", "out/a.dat", "out/x/b.dat", "out/x/y/c.dat"]);
    expect(await names("out/**")).toEqual(["out/a.dat", "out/x/b.dat", "out/x/y/c.dat"]);
    expect(await names("out/**/y/**/c.dat")).toEqual(["out/x/y/c.dat"]);
    expect(await names("./out//a.dat")).toEqual(["out/a.dat"]);
    expect(await names("\\*", "\\[x]", "{")).toEqual(["*", "[x]", "{"]);
    expect(await names("{out/a,b}.dat")).toEqual(["b.dat", "out/a.dat"]);
    expect(await names(".*")).toEqual([".hidden"]);
  });

  test("that name a directory stand for all files below it", async () => {
    files("out/a", "out/x/b", "out/.h/c");
    expect(await names("out")).toEqual(["out/.h/c", "out/a", "out/x/b"]);
    expect(await names("out/")).toEqual(["out/.h/c", "out/a", "out/x/b"]);
  });

  test("that several times name a file give it once", async () => {
    files("a", "b");
    const { found } = await search(["*", "a", "{a,b}", "**"]);
    expect(found.map(({ name, pattern }) => [name, pattern])).toEqual([
      ["a", "*"],
      ["b", "*"],
    ]);
  });

  test("match any name that Unix allows", async () => {
    const odd = ["new\nline", 'quo"te', "it's", "blank s", "näme ☃ 😀", "-rf", "back\\slash", "a,b", "~", "#x", "%41"];
    files(...odd.map((name) => `odd/${name}`));
    expect(await names("odd/*")).toEqual(odd.map((name) => `odd/${name}`).sort());
    expect(await names("odd/new\nline", "odd/n?me*", "odd/* ? ?")).toEqual(["odd/new\nline", "odd/näme ☃ 😀"]);
  });

  test("cost no more than the product of their lengths", () => {
    const alternatives = parsePathPattern(`${"*a".repeat(100)}b`);
    const part = alternatives![0]![0]!;
    if (part.kind !== "pattern") throw new Error(part.kind);
    // With backtracking, the sun would go down over this.
    expect(part.matches("a".repeat(250))).toBe(false);
    expect(part.matches(`${"a".repeat(250)}b`)).toBe(true);
  });

  test("with too many alternatives are refused", async () => {
    expect(parsePathPattern("{a,b}".repeat(9))).toHaveLength(512);
    expect(parsePathPattern("{a,b}".repeat(40))).toBeNull();
    expect((await search(["{a,b}".repeat(40)])).issues).toMatchObject([{ reason: "limit_reached" }]);
    expect(parsePathPattern(`{${"a,".repeat(ALTERNATIVES_MAX - 1)}a}`)).toHaveLength(ALTERNATIVES_MAX);
    expect(parsePathPattern(`{${"a,".repeat(ALTERNATIVES_MAX)}a}`)).toBeNull();
  });

  test("whose alternatives are long together are refused", async () => {
    const long = `${"{".repeat(4_000)}${"{a,b}".repeat(9)}`;
    expect((await search([long])).issues).toMatchObject([{ reason: "limit_reached" }]);
    expect(parsePathPattern(`{a,b}${"c".repeat(EXPANDED_MAX / 2)}`)).toBeNull();
    expect(parsePathPattern(`{a,b}${"c".repeat(EXPANDED_MAX / 2 - 1)}`)).toHaveLength(2);
  });

  // Each of these takes minutes, or all of the stack, where a brace or bracket is looked at again for each one before it.
  test("of a hundred thousand braces or brackets are read in one pass", () => {
    const many = 100_000;
    expect(expandBraces("{".repeat(many))).toHaveLength(1);
    expect(expandBraces("{,".repeat(many / 2))).toHaveLength(1);
    expect(expandBraces("{".repeat(many / 2) + "}".repeat(many / 2))).toHaveLength(1);
    expect(expandBraces("{,".repeat(many) + "}".repeat(many))).toBeNull();
    expect(expandBraces("{".repeat(many) + "{a,b}".repeat(10))).toBeNull();
    expect(parsePathPattern("[".repeat(many))).toEqual([[{ kind: "literal", name: "[".repeat(many) }]]);
    expect(parsePathPattern("[\\]".repeat(many / 3))).toEqual([[{ kind: "literal", name: "[]".repeat(many / 3) }]]);
  });

  test("have braces that nest, and braces that are characters", () => {
    const expansions: [string, string[]][] = [
      ["", [""]],
      ["a{b,c}d", ["abd", "acd"]],
      ["{a,b}{c,d}", ["ac", "ad", "bc", "bd"]],
      ["{x{a,b}y,z}", ["xay", "xby", "z"]],
      ["{,a}", ["", "a"]],
      ["{a,b", ["{a,b"]],
      ["a}b,c{", ["a}b,c{"]],
      ["{a}", ["{a}"]],
      ["{{a,b}}", ["{a}", "{b}"]],
      ["{x{a,b}", ["{xa", "{xb"]],
      ["{a,{b}", ["{a,{b}"]],
      ["{a,b}}", ["a}", "b}"]],
      ["\\{a,b}", ["\\{a,b}"]],
      ["{a\\,b,c\\}}", ["a\\,b", "c\\}"]],
    ];
    for (const [pattern, expanded] of expansions) expect([pattern, expandBraces(pattern)]).toEqual([pattern, expanded]);
  });

  test("have sets that end, and brackets that are characters", () => {
    const matches = (pattern: string, name: string): boolean => {
      const part = parsePathPattern(pattern)![0]![0]!;
      return part.kind === "literal" ? part.name === name : part.kind === "pattern" && part.matches(name);
    };
    const cases: [pattern: string, yes: string, no: string][] = [
      ["[]a]", "]", "b"],
      ["[!]a]", "b", "]"],
      ["[a-]", "-", "b"],
      ["[a-c-]", "b", "d"],
      ["[\\]]", "]", "\\"],
      ["[a\\]", "[a]", "a"],
      ["[]", "[]", "]"],
      ["[!", "[!", "a"],
      ["[", "[", "a"],
      ["[[a]", "[", "b"],
      ["[[-\\\\]", "[-", "[a"],
    ];
    for (const [pattern, yes, no] of cases) expect([pattern, matches(pattern, yes), matches(pattern, no)]).toEqual([pattern, true, false]);
  });
});

describe("what is reported", () => {
  test("a pattern that matches nothing, each of them", async () => {
    files("a");
    fs.mkdirSync(`${root}/empty`);
    const { found, issues } = await search(["a", "b", "no/such/*", "a/b", "empty"]);
    expect(found.map(({ name }) => name)).toEqual(["a"]);
    expect(issues.map(({ name, reason }) => [name, reason])).toEqual([
      ["b", "missing"],
      ["no/such/*", "missing"],
      ["a/b", "missing"],
      ["empty", "missing"],
    ]);
  });

  test("links that leave the root, in any position; links within it are followed", async () => {
    fs.mkdirSync(path.join(base, "outside"));
    fs.writeFileSync(path.join(base, "outside/secret"), "s");
    files("real/file");
    fs.symlinkSync("real/file", `${root}/inside`);
    fs.symlinkSync("real", `${root}/dir`);
    fs.symlinkSync("../outside/secret", `${root}/out-file`);
    fs.symlinkSync("../outside", `${root}/out-dir`);
    fs.symlinkSync("/etc/hostname", `${root}/absolute`);
    fs.symlinkSync("nowhere", `${root}/dangling`);
    fs.symlinkSync("loop", `${root}/loop`);
    const { found, issues } = await search(["inside", "dir/*", "out-file", "out-dir/secret", "out-dir/*", "absolute", "dangling", "loop"]);
    expect(found.map(({ name, real }) => [name, real])).toEqual([
      ["dir/file", "real/file"],
      ["inside", "real/file"],
    ]);
    expect(issues.map(({ pattern, reason }) => [pattern, reason])).toEqual([
      ["out-file", "path_escapes_root"],
      ["out-dir/secret", "path_escapes_root"],
      ["out-dir/*", "path_escapes_root"],
      ["absolute", "path_escapes_root"],
      ["dangling", "artifact_unreadable"],
      ["loop", "artifact_unreadable"],
    ]);
  });

  test("`**` does not go round in links", async () => {
    files("a/file");
    fs.symlinkSync("..", `${root}/a/up`);
    const { found, issues } = await search(["**"]);
    expect(found.map(({ name }) => name)).toEqual(["a/file"]);
    expect(issues).toEqual([]);
  });

  test("what is no file", async () => {
    expect(Bun.spawnSync(["mkfifo", `${root}/pipe`]).exitCode).toBe(0);
    const server = Bun.listen({ unix: `${root}/socket`, socket: { data: () => undefined } });
    try {
      const { found, issues } = await search(["pipe", "socket"]);
      expect(found).toEqual([]);
      expect(issues.map(({ name, reason }) => [name, reason])).toEqual([
        ["pipe", "not_a_file"],
        ["socket", "not_a_file"],
      ]);
    } finally {
      server.stop(true);
    }
  });

  test("a name that is not UTF-8", async () => {
    files("good", Buffer.from([0x62, 0xff, 0x64]));
    const { found, issues } = await search(["*"]);
    expect(found.map(({ name }) => name)).toEqual(["good"]);
    expect(issues).toMatchObject([{ reason: "artifact_unreadable", detail: "the name is not UTF-8" }]);
  });

  test("that there are too many files, or entries to look at, or directories in directories", async () => {
    files(...Array.from({ length: 20 }, (_, i) => `f${i}`));
    const few = await search(["*"], { maxFiles: 5 });
    expect(few.found).toHaveLength(5);
    expect(few.issues).toMatchObject([{ pattern: "*", reason: "limit_reached" }]);
    const short = await search(["*"], { maxEntries: 7 });
    expect(short.found).toHaveLength(7);
    expect(short.issues).toMatchObject([{ pattern: "*", reason: "limit_reached" }]);
    files(`${"d/".repeat(80)}deep`);
    const deep = await search(["**/deep"]);
    expect(deep.found).toEqual([]);
    expect(deep.issues).toMatchObject([{ reason: "limit_reached" }]);
  });

  test("a root with a blank in its name is searched like any other", async () => {
    root = path.join(base, "my work");
    fs.mkdirSync(root);
    files("a b/c");
    expect(await names("a */c")).toEqual(["a b/c"]);
  });
});
