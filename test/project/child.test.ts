import { describe, expect, test } from "bun:test";
import path from "node:path";
import { onPath, output, Problem, run } from "../../scripts/child.mjs";

const ROOT = path.dirname(path.dirname(import.meta.dir));

describe("run", () => {
  test("hands on the exit code", async () => {
    expect(await run("sh", ["-c", "exit 7"])).toBe(7);
    expect(await run("true", [])).toBe(0);
  });

  test("says by which signal a program was ended", async () => {
    expect(await run("sh", ["-c", "kill -TERM $$"])).toBe(128 + 15);
  });

  test("a program that is not there is a problem that names it", async () => {
    const problem: unknown = await run("no-such-program-here", []).catch((error: unknown) => error);
    expect(problem).toBeInstanceOf(Problem);
    expect(String(problem)).toContain("no-such-program-here");
  });
});

test("onPath finds programs and nothing else", () => {
  expect(onPath("sh")).toEndWith("/sh");
  expect(onPath("no-such-program-here")).toBeNull();
});

test("output is what a program prints, where it succeeds", () => {
  expect(output("sh", ["-c", "echo yes"])).toBe("yes");
  expect(output("sh", ["-c", "echo no; exit 1"])).toBeNull();
  expect(output("no-such-program-here", [])).toBeNull();
});

test("a verb that is none is refused with those that are", () => {
  const result = Bun.spawnSync([process.execPath, "scripts/run.mjs", "toString"], { cwd: ROOT, stderr: "pipe" });
  expect(result.exitCode).toBe(2);
  const named = [...result.stderr.toString().matchAll(/^ {2}(\w+) /gm)].map(([, verb]) => verb);
  expect(named).toEqual(["setup", "build", "demo", "test", "soak", "bench", "check", "fix"]);
});
