/**
 * The one entry point of package.json's scripts: `node scripts/run.mjs setup|build|demo|test|soak|bench|check|fix`.
 * Plain JavaScript without dependencies, so that Node or Bun alone can start it (Bun stands in for a missing `node`).
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Problem, run } from "./child.mjs";
import { setup } from "./setup.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const BUILD = ["build.ts", "--if-stale"];
const bin = (name) => `node_modules/${name}`;

/** Each verb: what Bun runs after setup, in this order, up to the first failure. `args` are the user's. */
const VERBS = {
  setup: () => [],
  build: (args) => [["build.ts", ...args]],
  demo: (args) => [BUILD, ["demo/run.ts", ...args]],
  test: (args) => [BUILD, ["test/runner/run.ts", ...(args.length > 0 ? args : ["fast", "rig", "soak", "--reduced"])]],
  soak: (args) => [BUILD, ["test/runner/run.ts", "soak", ...args]],
  bench: (args) => [BUILD, ["bench/run.ts", ...args]],
  check: () => [
    [bin("@biomejs/biome/bin/biome"), "ci", "."],
    [bin("typescript/bin/tsc"), "--noEmit"],
    [bin("knip/bin/knip.js")],
    ["test/runner/run.ts", "project"],
  ],
  fix: (args) => [[bin("@biomejs/biome/bin/biome"), "check", "--write", ...(args.length > 0 ? args : ["."])]],
};

async function main([verb, ...args]) {
  const steps = Object.hasOwn(VERBS, verb ?? "") ? VERBS[verb](args) : null;
  if (steps === null) {
    console.error(`usage: node scripts/run.mjs ${Object.keys(VERBS).join("|")} [arguments]`);
    return 2;
  }
  const bun = await setup(root);
  const env = { ...process.env, PATH: `${path.dirname(bun)}${path.delimiter}${process.env.PATH ?? ""}` };
  for (const step of steps) {
    const code = await run(bun, step, { cwd: root, env });
    if (code !== 0) return code;
  }
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
