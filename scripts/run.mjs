/**
 * The one entry point of package.json's scripts: `node scripts/run.mjs setup|build|demo|test|soak|bench|check|fix`.
 * Plain JavaScript without dependencies, so that Node or Bun alone can start it (Bun stands in for a missing `node`).
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Problem, run } from "./child.mjs";
import { setup } from "./setup.mjs";
import { INDEPENDENT, VERBS } from "./verbs.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
async function main([verb, ...args]) {
  const steps = Object.hasOwn(VERBS, verb ?? "") ? VERBS[verb](args) : null;
  if (steps === null) {
    console.error(`usage: node scripts/run.mjs ${Object.keys(VERBS).join("|")} [arguments]`);
    return 2;
  }
  const bun = await setup(root);
  const env = { ...process.env, PATH: `${path.dirname(bun)}${path.delimiter}${process.env.PATH ?? ""}` };
  let failure = 0;
  for (const step of steps) {
    const code = await run(bun, step, { cwd: root, env });
    failure ||= code;
    if (failure !== 0 && !INDEPENDENT.includes(verb)) break;
  }
  return failure;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
