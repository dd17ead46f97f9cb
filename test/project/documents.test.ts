import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { version } from "../../package.json";
import { VERBS } from "../../scripts/verbs.mjs";
import { temporaryDirectory } from "../runner/temporary.ts";
import { brokenLinks, linksOf, treeOfSrc } from "./documents.ts";
import { LAYERS } from "./rules.ts";
import { projectFiles } from "./tracked.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const read = (file: string): string => fs.readFileSync(path.join(ROOT, file), "utf8");
const VARIABLE = /CLIO_RELAY_[A-Z0-9_]*[A-Z0-9]/g;
const documents = projectFiles(ROOT).filter((file) => file.endsWith(".md"));

describe("the documents", () => {
  test("have no link that leads nowhere", () => {
    expect(documents).toEqual(expect.arrayContaining(["README.md", "CHANGELOG.md", "docs/architecture.md"]));
    expect(documents.flatMap((file) => brokenLinks(ROOT, file).map((target) => `${file}: ${target}`))).toEqual([]);
  });

  test("under docs/ are all named in the README or in the architecture page", () => {
    const named = [
      ...linksOf(read("README.md")),
      ...linksOf(read("docs/architecture.md")).map((target) => path.posix.join("docs", target)),
    ];
    for (const file of documents.filter((one) => one.startsWith("docs/")))
      expect(named.map((target) => target.split("#")[0])).toContain(file);
  });

  test("show the layers that there are", () => {
    expect(treeOfSrc(read("docs/architecture.md")).sort()).toEqual(fs.readdirSync(path.join(ROOT, "src")).sort());
    const order = /`(domain, lib < [^`]*)`/.exec(read("docs/architecture.md"))?.[1]?.replace(/[{}]/g, "");
    const built = LAYERS.map((row) => row.join(", ").replace("main.ts", "main")).join(" < ");
    expect(order).toBe(built);
  });

  test("tell of this version in the changelog", () => {
    expect(read("CHANGELOG.md")).toMatch(new RegExp(`^## (\\[)?${version.replaceAll(".", "\\.")}\\b`, "m"));
  });

  test("name no file and no directory of the project that there is not", () => {
    const place = /`((?:src|test|scripts|bench|demo|docs|examples)\/[^\s`*<>…]*)`/g;
    const named = documents.flatMap((file) => [...read(file).matchAll(place)].map(([, name]) => ({ file, name: name! })));
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(({ name }) => !fs.existsSync(path.join(ROOT, name)))).toEqual([]);
  });

  test("name no variable that nothing reads", () => {
    const sources = projectFiles(ROOT).filter((file) => /^(?:src|scripts|test|\.ci|build\.ts)/.test(file) && !file.endsWith(".md"));
    const known = new Set(sources.flatMap((file) => read(file).match(VARIABLE) ?? []));
    // One for each input that a job names.
    const isKnown = (name: string): boolean => known.has(name) || name.startsWith("CLIO_RELAY_INPUT_");
    const named = documents.flatMap((file) => (read(file).match(VARIABLE) ?? []).map((name) => ({ file, name })));
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter(({ name }) => !isKnown(name))).toEqual([]);
  });

  test("name no script that there is not", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const named = documents.flatMap((file) => [...read(file).matchAll(/\b(?:npm|bun) run ([\w-]+)/g)].map(([, name]) => name!));
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
  });
});

describe("package.json's scripts", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };

  test("are the verbs of scripts/run.mjs", () => {
    expect(scripts).toEqual(Object.fromEntries(Object.keys(VERBS).map((verb) => [verb, `node scripts/run.mjs ${verb}`])));
  });

  test("run files that are there", () => {
    const files = Object.values(VERBS).flatMap((steps) => steps([]).map(([file]) => file!));
    expect(files.length).toBeGreaterThan(8);
    for (const file of files) expect(fs.existsSync(path.join(ROOT, file)), file).toBe(true);
  });
});

describe("the checks themselves", () => {
  test("find a broken link and a broken anchor", () => {
    using directory = temporaryDirectory();
    const text = "# A b\n[x](b.md) [y](#a-b) [z](#nothing) [s](https://example.org) `[c](none.md)`\n```\n[d](none.md)\n```\n";
    fs.writeFileSync(path.join(directory.path, "a.md"), text);
    expect(brokenLinks(directory.path, "a.md")).toEqual(["b.md", "#nothing"]);
  });

  test("read the tree", () => {
    expect(treeOfSrc("x\n```\nsrc/\n  main.ts   begins\n            more\n  a/        first\n  b/\n```\n")).toEqual(["main.ts", "a", "b"]);
    expect(treeOfSrc("nothing")).toEqual([]);
  });
});
