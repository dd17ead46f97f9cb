import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { writeCancel } from "../../src/execution/attempt-dir.ts";
import { SHIM_ENVIRONMENT } from "../../src/execution/direct-spawner.ts";
import { systemClock, timestamp } from "../../src/lib/waiting/clock.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { sh, testAttempts } from "./attempts.ts";

const STARVED = ["sh", process.execPath, path.join(import.meta.dir, "starved-shim-entry.ts")];
const attempt = testAttempts(["/bin/sh", "-c", 'ulimit -n 256; exec "$@"', ...STARVED]);
const always = testAttempts(["/bin/sh", "-c", 'ulimit -n 256; STARVED=always exec "$@"', ...STARVED]);

test("a shim that has too many open files starts its job once it has not", async () => {
  const job = attempt(sh("echo ran; exit 4"));
  expect((await job.run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 4 });
  expect(job.text("stdout.log")).toBe("ran\n");
  expect(job.text("shim.log")).toContain("EMFILE");
});

test("a shim that has too many open files for long ends when its job is canceled meanwhile, and has started nothing", async () => {
  const job = always(sh("echo ran"));
  const shim = job.start();
  await eventually(() => job.text("shim.log").includes("EMFILE"), { what: "its shortage" });
  writeCancel(job.directory, timestamp(systemClock));
  shim.kill("SIGTERM");
  expect((await job.exit()).outcome).toMatchObject({ reason: "canceled", message: "asked to end before it started" });
  expect(job.text("stdout.log")).toBe("");
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
