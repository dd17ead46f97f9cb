import type { TestCase } from "./junit.ts";

/** A component that was missing, and the test file that did without it. */
export interface SkipRecord {
  readonly component: string;
  readonly reason: string;
  readonly file: string;
}

export interface RunFacts {
  readonly suite: string;
  /** The file that was to run; null for a suite that has none. */
  readonly file: string | null;
  readonly cases: readonly TestCase[];
  readonly skips: readonly SkipRecord[];
  /** Exit code of the test process; null when it was ended for taking too long. */
  readonly exitCode: number | null;
  /** Processes that the tests had started and not ended, and what they had mounted, as lines for people. */
  readonly leftBehind: readonly string[];
}

export interface Verdict {
  /** The file that was judged; null for a suite that has none. */
  readonly file: string | null;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** What counts as failed besides the failed tests themselves. */
  readonly complaints: readonly string[];
  /** Names of the tests that failed. */
  readonly failures: readonly string[];
}

/**
 * Judge the run of a file. More counts as a failure than a failed test: a suite or a file without a test, a test without an
 * assertion, a skip that gave no reason, a test process that died, a process or a mount that a test left behind.
 */
export function judge(run: RunFacts): Verdict {
  const complaints: string[] = [];
  const of = (outcome: TestCase["outcome"]): TestCase[] => run.cases.filter((test) => test.outcome === outcome);
  const failed = of("failed");
  const hollow = of("passed").filter((test) => test.assertions === 0);

  if (run.file === null) complaints.push(`suite ${run.suite} has no tests`);
  else if (run.cases.length === 0 && run.exitCode !== null) complaints.push(`${run.file}: no test in it ran`);
  for (const test of hollow) complaints.push(`${test.file}: "${test.name}" asserted nothing`);
  for (const test of of("todo")) complaints.push(`${test.file}: "${test.name}" is not written`);
  const explained = new Set(run.skips.map((skip) => skip.file));
  for (const file of new Set(of("skipped").map((test) => test.file))) {
    if (!explained.has(file))
      complaints.push(`${file}: skips tests without a reason (describeWith of test/runner/components.ts gives one)`);
  }
  for (const line of run.leftBehind) complaints.push(`${run.file} left behind: ${line}`);
  if (run.exitCode === null) complaints.push(`${run.file}: suite ${run.suite} took too long, and this file was ended`);
  else if (run.exitCode !== 0 && failed.length === 0 && complaints.length === 0) {
    complaints.push(`${run.file}: the test process ended with ${run.exitCode}, though no test failed`);
  }
  return {
    file: run.file,
    passed: of("passed").length - hollow.length,
    failed: failed.length + complaints.length,
    skipped: of("skipped").length,
    complaints,
    failures: failed.map((test) => test.name),
  };
}

/** Lines for people that name all that is wrong, `what` before each: nothing where all is well. */
export const wrongLines = ({ file, complaints, failures }: Verdict, what: "failed" | "unsteady"): string[] => [
  ...complaints.map((complaint) => `${what}: ${complaint}`),
  ...failures.map((name) => `${what}: ${file}: "${name}"`),
];

/** The closing line. */
export const summary = ({ passed, failed, skipped }: Pick<Verdict, "passed" | "failed" | "skipped">): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;

/** The files that took longest, for people: with their whole time, what follows their tests included. */
export function slowest(took: ReadonlyMap<string, number>, count = 10): string {
  const longest = [...took].toSorted(([, a], [, b]) => b - a).slice(0, count);
  const all = [...took.values()].reduce((sum, ms) => sum + ms, 0);
  const lines = longest.map(([file, ms]) => `  ${(ms / 1_000).toFixed(1).padStart(6)} s  ${file}`);
  return [`slowest of ${took.size} files, which took ${(all / 1_000).toFixed(0)} s in all:`, ...lines].join("\n");
}
