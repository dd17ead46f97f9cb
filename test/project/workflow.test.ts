import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import manifest from "../../package.json";
import { fileOf, TARGETS } from "../../scripts/release/targets.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

interface Step {
  readonly run?: string;
  readonly uses?: string;
}
interface Job {
  readonly needs?: string | readonly string[];
  readonly strategy?: { readonly matrix: { readonly include?: readonly { readonly file: string }[] } };
  readonly steps: readonly Step[];
}

test("the release workflow's steps are well-formed, run scripts that are there, and name no host", () => {
  const text = fs.readFileSync(path.join(ROOT, ".github/workflows/release.yml"), "utf8");
  const { jobs } = Bun.YAML.parse(text) as { jobs: Record<string, Job> };
  expect(Object.keys(jobs)).toEqual(["test", "build", "try", "draft"]);
  expect(text).not.toMatch(/https?:\/\/|registry/);
  const scripts = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => (run === undefined ? [] : [run])));
  expect(scripts.length).toBeGreaterThan(5);
  for (const script of scripts) {
    const checked = Bun.spawnSync(["bash", "-n"], { stdin: new TextEncoder().encode(script.replace(/\$\{\{[^}]*\}\}/g, "value")) });
    expect(checked.stderr.toString()).toBe("");
    for (const [, name] of script.matchAll(/npm run (\w+)/g)) expect(Object.keys(manifest.scripts)).toContain(name!);
  }
  for (const { needs = [] } of Object.values(jobs)) for (const name of [needs].flat()) expect(Object.keys(jobs)).toContain(name);
  for (const { file } of jobs["try"]!.strategy!.matrix.include!) expect(TARGETS.map(fileOf)).toContain(file);
});
