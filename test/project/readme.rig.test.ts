import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { EXECUTABLE, Relay } from "../runner/relay.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

/** The shell blocks of a section of the README. */
function blocksOf(section: string): string[] {
  const readme = fs.readFileSync(path.join(ROOT, "README.md"), "utf8");
  const text = readme.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? "";
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block!);
}

test("what the README shows under `Use it` works as it is written", async () => {
  const [build, use] = blocksOf("Use it");
  expect(build).toContain("npm run build");
  expect(use).toContain("clio-relay job submit");
  await using relay = new Relay();
  const environment = { ...relay.environment, PATH: `${path.dirname(EXECUTABLE)}:${process.env.PATH}` };
  const shell = Bun.spawn(["sh", "-eu", "-c", use!], {
    cwd: relay.directory,
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("stdout | step 3");
  expect(stdout).toContain("3/3");
  expect(stdout).toContain("\nstep 1\nstep 2\nstep 3\n");
  expect(stdout).toMatch(/execution_output\t\d+\t[0-9a-f]{64}\t1\tresult\.txt/);
  expect(fs.existsSync(path.join(relay.directory, "result.txt"))).toBe(true);
});
