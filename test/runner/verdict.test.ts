import { describe, expect, test } from "bun:test";
import type { TestCase } from "./junit.ts";
import { judge, type RunFacts, slowest, summary } from "./verdict.ts";

const good: TestCase = { file: "test/a.test.ts", name: "a", outcome: "passed", assertions: 1 };
const run = (over: Partial<RunFacts>): RunFacts => ({
  suite: "fast",
  file: "test/a.test.ts",
  cases: [good],
  skips: [],
  exitCode: 0,
  leftBehind: [],
  ...over,
});

describe("judge", () => {
  test("a good run has no complaints", () => {
    expect(judge(run({}))).toEqual({ file: "test/a.test.ts", passed: 1, failed: 0, skipped: 0, complaints: [], failures: [] });
  });

  test("a failed test is counted once", () => {
    const failed: TestCase = { ...good, name: "b", outcome: "failed" };
    expect(judge(run({ cases: [good, failed], exitCode: 1 }))).toMatchObject({ passed: 1, failed: 1, complaints: [] });
  });

  test.each([
    ["a suite without files", { cases: [], file: null }, "suite fast has no tests"],
    ["a file without tests", { cases: [] }, "test/a.test.ts: no test in it ran"],
    ["a test without assertions", { cases: [good, { ...good, name: "hollow", assertions: 0 }] }, '"hollow" asserted nothing'],
    ["a test that is only announced", { cases: [good, { ...good, name: "later", outcome: "todo" }] }, "not written"],
    ["a skip without a reason", { cases: [good, { ...good, outcome: "skipped" }] }, "skips tests without a reason"],
    ["a process left behind", { leftBehind: ["process 12 sleep 1000"] }, "test/a.test.ts left behind: process 12 sleep 1000"],
    ["a file that took too long", { cases: [], exitCode: null }, "test/a.test.ts: suite fast took too long"],
    ["a test process that died", { exitCode: 132 }, "ended with 132"],
  ] satisfies [string, Partial<RunFacts>, string][])("%s fails the run", (_what, over, complaint) => {
    const verdict = judge(run(over));
    expect(verdict.failed).toBe(1);
    expect(verdict.complaints).toEqual([expect.stringContaining(complaint)]);
  });

  test("a skip with a reason is counted as skipped", () => {
    const skips = [{ component: "tmpfs", reason: "needs root", file: "test/a.test.ts" }];
    expect(judge(run({ cases: [good, { ...good, outcome: "skipped" }], skips }))).toMatchObject({ passed: 1, failed: 0, skipped: 1 });
  });
});

test("summary is the one closing line", () => {
  expect(summary({ passed: 3, failed: 0, skipped: 2 })).toBe("3 passed, 0 failed, 2 skipped");
});

test("the slowest files are named, the longest first", () => {
  const took = new Map([
    ["a", 1_000],
    ["b", 62_340],
    ["c", 2_000],
  ]);
  expect(slowest(took, 2)).toBe("slowest of 3 files, which took 65 s in all:\n    62.3 s  b\n     2.0 s  c");
});
