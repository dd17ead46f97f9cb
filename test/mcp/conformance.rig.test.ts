import { afterAll, beforeAll, expect, test } from "bun:test";
import path from "node:path";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { mcpProgram } from "../rigs/mcp-programs/programs.ts";
import { describeWith } from "../runner/components.ts";
import { notApplicable } from "./scenarios.ts";

/** Scenarios of the tasks extension. What they skip by themselves they say. */
const TASKS = [
  "tasks-capability-negotiation",
  "tasks-lifecycle",
  "tasks-dispatch-and-envelope",
  "tasks-mrtr-input",
  "tasks-mrtr-composition",
  "tasks-request-headers",
  "tasks-request-state-removal",
  "tasks-required-task-error",
  "tasks-wire-fields",
  "tasks-status-notifications",
] as const;

describeWith("mcp-programs", "the conformance suites", () => {
  let relay: SourceRelay;
  let entry: Bun.Subprocess<"pipe", "pipe", "inherit">;
  let url = "";
  const failed = new Set<string>();
  const passed = new Set<string>();

  beforeAll(async () => {
    relay = await initialized();
    // The scenarios run at once, and leave long jobs behind.
    await relay.ok("cluster", "add", "--name", "local", "--worker-concurrency", "24");
    await relay.ok("worker", "start", "--cluster", "local");
    const command = [process.execPath, path.join(import.meta.dir, "conformance-entry.ts")];
    entry = Bun.spawn(command, { env: relay.environment, cwd: relay.directory, stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    for await (const chunk of entry.stdout) {
      url += new TextDecoder().decode(chunk);
      if (url.includes("\n")) break;
    }
    url = url.trim();
  });

  afterAll(async () => {
    entry?.stdin.end();
    await entry?.exited;
    await relay?.[Symbol.asyncDispose]();
  });

  const suite = async (of: readonly string[], ...args: string[]): Promise<{ code: number; output: string }> => {
    const child = Bun.spawn([process.execPath, mcpProgram(...of, "dist", "index.js"), "server", "--url", url, ...args], {
      cwd: relay.directory,
      env: relay.environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, output: out + err };
  };
  const NEW = ["@modelcontextprotocol", "conformance"];

  test("every scenario of the tasks extension passes", async () => {
    const ran = await Promise.all(
      TASKS.map(async (scenario) => ({ scenario, ...(await suite(NEW, "--scenario", scenario, "--timeout", "100000")) })),
    );
    for (const { scenario, code, output } of ran) expect([scenario, code, failuresIn(output)]).toEqual([scenario, 0, []]);
    const passed = ran.map(({ output }) => Number(/Passed: (\d+)\/\d+, 0 failed/.exec(output)?.[1] ?? 0));
    // With each scenario's own look at every message on the wire.
    expect(passed.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(44);
  });

  const failuresIn = (output: string): string[] => output.split("\n").filter((line) => /FAILURE|^ +Error:/.test(line));
  const failedOf = (output: string): string[] => [...output.matchAll(/^✗ ([\w-]+):/gm)].map(([, name]) => name!);
  const passedOf = (output: string): string[] => [...output.matchAll(/^✓ ([\w-]+):/gm)].map(([, name]) => name!);

  for (const [revision, of, args, least] of [
    ["2026-07-28", NEW, ["--suite", "all", "--spec-version", "2026-07-28"], 23],
    ["2025-11-25", ["conformance-2025"], [], 14],
  ] as const) {
    test(`every scenario of ${revision} passes that applies`, async () => {
      const { output } = await suite(of, ...args);
      const excepted = notApplicable();
      expect(failedOf(output).filter((scenario) => !excepted.has(scenario))).toEqual([]);
      expect(passedOf(output).length).toBeGreaterThanOrEqual(least);
      for (const scenario of failedOf(output)) failed.add(scenario);
      for (const scenario of passedOf(output)) passed.add(scenario);
    });
  }

  test("none that passes in both is said not to apply", () => {
    const idle = [...notApplicable().keys()].filter((scenario) => !failed.has(scenario));
    expect([idle, idle.filter((scenario) => !passed.has(scenario))]).toEqual([[], []]);
  });
});
