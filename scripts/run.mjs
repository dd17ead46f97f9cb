/**
 * The one entry point of package.json's scripts: `node scripts/run.mjs setup|build|demo|test|soak|bench|check|fix`.
 * Plain JavaScript without dependencies, so that Node or Bun alone can start it (Bun stands in for a missing `node`).
 */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Problem, run } from "./child.mjs";
import { setup } from "./setup.mjs";
import { INDEPENDENT, USAGE, usage, VERBS } from "./verbs.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const HELP = ["--help", "-h"];

async function main([verb, ...args]) {
  const known = Object.hasOwn(VERBS, verb ?? "");
  if ([...HELP, "help"].includes(verb) || (known && args.some((arg) => HELP.includes(arg)))) {
    console.log(usage(known ? verb : undefined));
    return 0;
  }
  if (!known) {
    console.error(usage());
    return 2;
  }
  if (USAGE[verb][0] === null && args.length > 0) {
    console.error(`${verb} takes no arguments`);
    return 2;
  }
  const steps = VERBS[verb](args);
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
