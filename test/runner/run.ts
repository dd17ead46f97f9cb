/**
 * Runs suites: `run.ts [fast|rig|soak|project …] [--reduced] [--again] [test files …]`. The last line is
 * `N passed, N failed, N skipped`; the exit code is 1 where something failed, 2 where the call is wrong.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { requiredComponents } from "./components.ts";
import { installComponents } from "./install.ts";
import { parseJunit } from "./junit.ts";
import { endLeftovers, RUN_MARK, unmountLeftovers } from "./leftovers.ts";
import { neighboursOf, runBeside } from "./neighbours.ts";
import { removeTree } from "./remove.ts";
import { secondRuns } from "./second-run.ts";
import { filesOf, SUITES, type Suite, suiteOf, testFiles } from "./suites.ts";
import { judge, type SkipRecord, slowest, summary, type Verdict, wrongLines } from "./verdict.ts";

const root = path.dirname(path.dirname(import.meta.dir));

/** Bound of the soak suite where only a reduced run was asked for. */
const REDUCED_TIMEOUT_MS = 15 * 60_000;

interface Plan {
  readonly suite: Suite;
  readonly files: readonly string[];
}

function plan(args: readonly string[]): Plan[] | string {
  const all = testFiles(root);
  const names = args.filter((arg) => SUITES.some((suite) => suite.name === arg));
  const chosen = args.filter((arg) => !names.includes(arg)).map((arg) => path.relative(root, path.resolve(arg)));
  for (const file of chosen) if (!all.some((known) => known === file || known.startsWith(`${file}/`))) return `there is no test at ${file}`;
  const wanted = chosen.length === 0 ? [] : all.filter((file) => chosen.some((one) => file === one || file.startsWith(`${one}/`)));
  const suites = SUITES.filter((suite) => names.includes(suite.name));
  if (chosen.length === 0) return suites.map((suite) => ({ suite, files: filesOf(suite, all) }));
  const used = SUITES.filter(
    (suite) => (suites.length === 0 || suites.includes(suite)) && wanted.some((file) => suiteOf(file) === suite.name),
  );
  return used.map((suite) => ({ suite, files: wanted.filter((file) => suiteOf(file) === suite.name) }));
}

/** Seed and size of the random parts; printed, so that a failure can be had again. */
function soakSettings(reduced: boolean): Record<string, string> {
  const seed = process.env["CLIO_RELAY_SOAK_SEED"] ?? String(crypto.getRandomValues(new Uint32Array(1))[0]);
  const scale = process.env["CLIO_RELAY_SOAK_SCALE"] ?? (reduced ? "0.1" : "1");
  console.log(`soak: seed ${seed}, scale ${scale}; again with CLIO_RELAY_SOAK_SEED=${seed} CLIO_RELAY_SOAK_SCALE=${scale}`);
  return { CLIO_RELAY_SOAK_SEED: seed, CLIO_RELAY_SOAK_SCALE: scale };
}

/** The environment without the user's own settings of the relay, which tests must not depend on. */
function inherited(): Record<string, string | undefined> {
  const own = (name: string): boolean => name.startsWith("CLIO_RELAY_") && !/^CLIO_RELAY_(?:TEST|SOAK)_/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !own(name)));
}

interface Options {
  /** The random parts at a tenth of their size. */
  readonly reduced: boolean;
  /** A file that failed runs once more, by itself. */
  readonly again: boolean;
}

/** What became of a suite; `unsteady` are the first verdicts on files that failed once and then did not. */
interface SuiteRun {
  readonly verdicts: readonly Ran[];
  readonly unsteady: readonly Ran[];
}

/** A verdict, and what the tests had said. */
interface Ran extends Verdict {
  readonly said: string;
}

/** Each file in a process of its own, so that whatever it leaves has a name. */
async function runSuite({ suite, files }: Plan, { reduced, again }: Options): Promise<SuiteRun> {
  console.log(`\n== ${suite.name}: ${suite.about} (${files.length} files)`);
  if (files.length === 0) {
    const nothing = judge({ suite: suite.name, file: null, cases: [], skips: [], exitCode: 0, leftBehind: [] });
    return { verdicts: [{ ...nothing, said: "" }], unsteady: [] };
  }
  const soak = suite.name === "soak";
  const env = { ...inherited(), ...(soak ? soakSettings(reduced) : {}) };
  const deadline = performance.now() + (soak && reduced ? REDUCED_TIMEOUT_MS : suite.suiteTimeoutMs);
  const verdicts: Ran[] = [];
  const took = new Map<string, number>();
  const planned = files.map((file) => ({ file, neighbours: neighboursOf(file, fs.readFileSync(path.join(root, file), "utf8")) }));
  await runBeside(planned, suite.lanes, async (file) => {
    const began = performance.now();
    verdicts.push(await runFile(suite, file, env, deadline));
    took.set(file, performance.now() - began);
  });
  console.log(slowest(took));
  return again ? await secondRuns(verdicts, (file) => runFile(suite, file, env, deadline)) : { verdicts, unsteady: [] };
}

async function runFile(suite: Suite, file: string, env: Record<string, string | undefined>, deadline: number): Promise<Ran> {
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-tests-"));
  // What the tests have for /tmp: its name is short, because sockets lie in it, and other users may pass through.
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "r"));
  fs.chmodSync(temporary, 0o755);
  const report = path.join(scratch, "junit.xml");
  const skips = path.join(scratch, "skips");
  const output = path.join(scratch, "output");
  const run = crypto.randomUUID();
  const start = performance.now();
  try {
    const log = fs.openSync(output, "w");
    const child = Bun.spawn(
      [
        process.execPath,
        "test",
        `./${file}`,
        `--timeout=${suite.testTimeoutMs}`,
        "--reporter=junit",
        `--reporter-outfile=${report}`,
        "--only-failures",
      ],
      {
        cwd: root,
        stdin: "ignore",
        stdout: log,
        stderr: log,
        env: { ...env, TMPDIR: temporary, CLIO_RELAY_TEST_SKIPS: skips, [RUN_MARK]: run },
        timeout: Math.max(1, Math.round(deadline - start)),
        killSignal: "SIGKILL",
      },
    );
    fs.closeSync(log);
    await child.exited;
    const cases = fs.existsSync(report) ? parseJunit(fs.readFileSync(report, "utf8")) : [];
    const said = spokenLines(fs.readFileSync(output, "utf8"));
    console.log(`${file}: ${cases.length} tests, ${((performance.now() - start) / 1_000).toFixed(1)} s${said === "" ? "" : `\n${said}`}`);
    const verdict = judge({
      suite: suite.name,
      file,
      cases,
      skips: fs.existsSync(skips) ? skipRecords(fs.readFileSync(skips, "utf8")) : [],
      exitCode: child.signalCode === "SIGKILL" ? null : (child.exitCode ?? 1),
      leftBehind: [...(await endLeftovers(run, temporary)), ...unmountLeftovers(temporary)],
    });
    return { ...verdict, said };
  } finally {
    for (const directory of [scratch, temporary]) removeTree(directory);
  }
}

/** What bun test says of every file, and the runner says once for all. */
const USUAL = /^(?:bun test v.*|\s*\d+ (?:pass|fail|skip|todo)|\s*\d+ expect\(\) calls|Ran \d+ tests? across .*|test\/\S+\.test\.ts:|)$/;

const spokenLines = (output: string): string =>
  output
    .split("\n")
    .filter((line) => !USUAL.test(line))
    .join("\n");

const skipRecords = (text: string): SkipRecord[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as SkipRecord);

/** What is wrong, told once more at the end: a log of thousands of lines is read there, and may be kept only in part. */
function tell(ran: readonly Ran[], what: "failed" | "unsteady"): void {
  for (const one of ran) {
    const lines = wrongLines(one, what);
    if (lines.length === 0) continue;
    const said = one.failures.length === 0 || one.said === "" ? [] : one.said.split("\n").slice(-SAID_LINES);
    console.log(["", ...lines, ...said.map((line) => `  | ${line.slice(0, SAID_CHARACTERS)}`)].join("\n"));
  }
}

const SAID_LINES = 60;
const SAID_CHARACTERS = 400;

async function main(args: readonly string[]): Promise<number> {
  const options: Options = { reduced: args.includes("--reduced"), again: args.includes("--again") };
  const plans = plan(args.filter((arg) => arg !== "--reduced" && arg !== "--again"));
  if (typeof plans === "string" || plans.length === 0) {
    console.error(typeof plans === "string" ? plans : `name suites (${SUITES.map((suite) => suite.name).join(", ")}) or test files`);
    return 2;
  }
  try {
    requiredComponents();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 2;
  }
  if (plans.some(({ suite }) => suite.name !== "project")) await installComponents();
  const verdicts: Ran[] = [];
  const unsteady: Ran[] = [];
  for (const one of plans) {
    const of = await runSuite(one, options);
    verdicts.push(...of.verdicts);
    unsteady.push(...of.unsteady);
  }
  tell(unsteady, "unsteady");
  tell(verdicts, "failed");
  const total = (key: "passed" | "failed" | "skipped"): number => verdicts.reduce((sum, verdict) => sum + verdict[key], 0);
  const counts = { passed: total("passed"), failed: total("failed"), skipped: total("skipped") };
  console.log(`\n${summary(counts)}`);
  return counts.failed === 0 && counts.passed > 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
