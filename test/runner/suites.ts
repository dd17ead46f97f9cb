import path from "node:path";

export interface Suite {
  readonly name: "fast" | "rig" | "soak" | "project";
  readonly about: string;
  /** Bound of one test that sets none itself: for one that hangs, not for one on a busy machine. */
  readonly testTimeoutMs: number;
  /** Bound of the whole suite; whoever is still running then is ended. */
  readonly suiteTimeoutMs: number;
  /** How many of its files run at a time. */
  readonly lanes: number;
}

const minutes = (n: number): number => n * 60_000;

/** A file belongs to rig or soak by its name, to fast otherwise; `project` is the part of fast that looks at the project itself. */
export const SUITES: readonly Suite[] = [
  { name: "fast", about: "units, contracts, rules", testTimeoutMs: minutes(5), suiteTimeoutMs: minutes(20), lanes: 3 },
  {
    name: "rig",
    about: "the built executable and services of this machine",
    testTimeoutMs: minutes(5),
    suiteTimeoutMs: minutes(30),
    lanes: 3,
  },
  { name: "soak", about: "random faults for as long as you like", testTimeoutMs: minutes(60), suiteTimeoutMs: minutes(180), lanes: 2 },
  { name: "project", about: "layers, lockfiles, documents", testTimeoutMs: minutes(5), suiteTimeoutMs: minutes(10), lanes: 2 },
];

/** Which suite a test file belongs to. */
export function suiteOf(file: string): "fast" | "rig" | "soak" {
  if (file.endsWith(".rig.test.ts")) return "rig";
  if (file.endsWith(".soak.test.ts")) return "soak";
  return "fast";
}

/** The files of a suite out of all test files. */
export function filesOf(suite: Suite, files: readonly string[]): string[] {
  if (suite.name === "project") return files.filter((file) => file.startsWith("test/project/") && suiteOf(file) === "fast");
  return files.filter((file) => suiteOf(file) === suite.name);
}

/** All test files below `root`, as paths relative to it, in order. */
export function testFiles(root: string): string[] {
  return [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })].map((file) => file.split(path.sep).join("/")).sort();
}
