import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { suiteOf } from "../runner/suites.ts";
import { projectFiles, registriesNamed } from "./tracked.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const files = projectFiles(ROOT);

test("no file names a package registry: the user's own configuration says where packages come from", () => {
  expect(files).toEqual(expect.arrayContaining(["package.json", "package-lock.json", "bun.lock", "README.md"]));
  const named = files.flatMap((file) => {
    const bytes = fs.readFileSync(path.join(ROOT, file));
    return bytes.length > 4_000_000 ? [] : registriesNamed(bytes.toString("latin1")).map((host) => `${file}: ${host}`);
  });
  expect(named).toEqual([]);
});

test("a registry that is named is found", () => {
  const host = ["registry", "npmjs", "org"].join(".");
  expect(registriesNamed(`registry=https://${host}/`)).toHaveLength(1);
  expect(registriesNamed("registry=the one of your site")).toEqual([]);
});

test("nothing that is built or installed is committed", () => {
  expect(files.filter((file) => /^(?:dist|node_modules|\.tools)\//.test(file))).toEqual([]);
});

test("what `check` runs needs nothing that only the tests install", () => {
  const checked = files.filter((file) => file.startsWith("test/project/") && file.endsWith(".test.ts") && suiteOf(file) === "fast");
  expect(checked.length).toBeGreaterThan(0);
  expect(checked.filter((file) => /from "[./\w]+\/components\.ts"/.test(fs.readFileSync(path.join(ROOT, file), "utf8")))).toEqual([]);
});
