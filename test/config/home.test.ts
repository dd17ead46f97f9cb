import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { readEnvironment } from "../../src/config/environment.ts";
import { resolvePaths } from "../../src/config/paths.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();

test("the home directory is the one that HOME names", () => {
  expect(readEnvironment({ HOME: "/some/where" }).home).toBe("/some/where");
  for (const none of [{ HOME: "" }, {}]) expect(path.isAbsolute(readEnvironment(none).home)).toBe(true);
});

test("one that depends on where a command is typed is refused, unless nothing lies there", () => {
  const resolve = (more: Record<string, string>) => resolvePaths(readEnvironment({ HOME: "here", ...more }, "/work"));
  expect(() => resolve({})).toThrow('HOME is "here", but must be an absolute path');
  expect(resolve({ CLIO_RELAY_HOME: "/work/there" }).base).toBe("/work/there");
});

describeWith("root", "a user whom the system has no record of", () => {
  test("has the root for a home where HOME is not set", async () => {
    // Runtime and program where that user can read them, wherever this checkout is.
    const directory = temporary();
    fs.chmodSync(directory, 0o755);
    const runtime = path.join(directory, "bun");
    fs.copyFileSync(process.execPath, runtime);
    fs.chmodSync(runtime, 0o755);
    const built = await Bun.build({ entrypoints: [path.resolve(import.meta.dir, "../../src/config/environment.ts")], target: "bun" });
    const program = path.join(directory, "environment.js");
    fs.writeFileSync(program, `${await built.outputs[0]!.text()}\nconsole.log(readEnvironment().home);\n`, { mode: 0o644 });
    const child = Bun.spawn(["setpriv", "--reuid", "54321", "--clear-groups", runtime, program], {
      env: { PATH: process.env["PATH"] ?? "" },
      cwd: "/",
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect({ stdout, stderr, code }).toEqual({ stdout: "/\n", stderr: "", code: 0 });
  });
});
