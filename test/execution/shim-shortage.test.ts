import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { SHIM_ENVIRONMENT } from "../../src/execution/direct-spawner.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts([
  "/bin/sh",
  "-c",
  'ulimit -n 256; exec "$@"',
  "sh",
  process.execPath,
  path.join(import.meta.dir, "starved-shim-entry.ts"),
]);

test("a shim that has too many open files starts its job once it has not", async () => {
  const job = attempt(sh("echo ran; exit 4"));
  expect((await job.run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 4 });
  expect(job.text("stdout.log")).toBe("ran\n");
  expect(job.text("shim.log")).toContain("EMFILE");
});

describeWith("root", "at the limit of processes", () => {
  const temporary = temporaryDirectories();

  test("a shim that could never read its attempt ends by itself", async () => {
    const outdir = temporary();
    fs.chmodSync(outdir, 0o755);
    // In one file: loading several takes a thread, too.
    const built = await Bun.build({ entrypoints: [path.join(import.meta.dir, "impatient-shim-entry.ts")], target: "bun", outdir });
    const command = [process.execPath, built.outputs[0]!.path, "__shim", "--told", outdir];
    const shim = Bun.spawn(["setpriv", "--reuid", "54904", "--clear-groups", "prlimit", "--nproc=1", ...command], {
      env: { ...SHIM_ENVIRONMENT },
      stdin: "pipe",
      timeout: 20_000,
    });
    shim.stdin.write("/nowhere/job/attempt-1\n");
    await shim.stdin.end();
    expect(await shim.exited).toBe(1);
    expect(shim.signalCode).toBeNull();
  });
});
