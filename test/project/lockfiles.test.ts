import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { bunPins, disagreements, npmPins } from "../../scripts/lockfiles.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const read = (file: string): string => fs.readFileSync(path.join(ROOT, file), "utf8");
const npm = npmPins(read("package-lock.json"));
const bun = bunPins(read("bun.lock"));

describe("the lockfiles", () => {
  test("pin the same packages at the same versions with the same contents", () => {
    expect(npm.size).toBeGreaterThan(10);
    expect([...npm.values()].filter(({ integrity }) => integrity !== null).length).toBe(npm.size);
    expect(disagreements(npm, bun)).toEqual([]);
  });

  test("pin what package.json asks for, which asks for exact versions", () => {
    const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
    const wanted = Object.entries({ ...dependencies, ...devDependencies });
    expect(wanted.length).toBeGreaterThan(5);
    for (const [name, version] of wanted) {
      expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
      expect(npm.get(name)?.version, name).toBe(version);
    }
  });

  test("say nothing of where packages come from, so that everybody's own configuration decides", () => {
    expect(read("package-lock.json")).not.toContain('"resolved"');
    expect(read("bun.lock")).not.toMatch(/https?:/);
  });
});

describe("disagreements", () => {
  const npmText = (version: string, integrity: string): string =>
    JSON.stringify({ lockfileVersion: 3, packages: { "": {}, "node_modules/@a/b/node_modules/c": { version, integrity } } });
  const bunText = (id: string, integrity: string): string => `{ "packages": { "@a/b/c": ["${id}", "", {}, "${integrity}"], }, }`;
  const compare = (a: string, b: string): string[] => disagreements(npmPins(a), bunPins(b));

  test("none where both say the same", () => {
    expect(compare(npmText("1.0.0", "sha512-x"), bunText("c@1.0.0", "sha512-x"))).toEqual([]);
  });

  test("another version, another content, another set", () => {
    expect(compare(npmText("1.0.0", "sha512-x"), bunText("c@1.0.1", "sha512-x"))).toEqual(["@a/b/c: c@1.0.0 and c@1.0.1"]);
    expect(compare(npmText("1.0.0", "sha512-x"), bunText("c@1.0.0", "sha512-y"))).toEqual(["@a/b/c: two integrities"]);
    expect(compare(npmText("1.0.0", "sha512-x"), "{}".replace("{}", '{"packages":{}}'))).toEqual(["@a/b/c is in package-lock.json only"]);
    expect(compare('{"lockfileVersion":3,"packages":{}}', bunText("c@1.0.0", "sha512-x"))).toEqual(["@a/b/c is in bun.lock only"]);
  });

  test("a lockfile of another version is not taken for an empty one", () => {
    expect(() => npmPins('{"lockfileVersion":2,"packages":{}}')).toThrow("version 2");
  });
});
