import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { allocationScript } from "../../src/execution/allocation-script.ts";
import { readExit, readStart, voidAttempt } from "../../src/execution/attempt-dir.ts";
import { surroundings } from "../../src/execution/shim/allocation.ts";
import { bash, FROM_SOURCE, type TestAttempt, testAttempts } from "./attempts.ts";

const attempt = testAttempts();

const SLURM = { PATH: "/usr/bin:/bin", SLURM_JOB_ID: "4711", SLURM_CLUSTER_NAME: "pond", SLURM_NTASKS: "3", TMPDIR: "/tmp" };

/** Run a batch script of the attempt as a scheduler does: in a directory of the scheduler's, without input. */
async function batch(job: TestAttempt, environment: Record<string, string>, command = FROM_SOURCE, directory = job.directory) {
  const script = job.file("batch.sh");
  fs.writeFileSync(script, `#!/bin/sh\n${allocationScript(command, directory).join("\n")}\n`, { mode: 0o700 });
  const child = Bun.spawn(["/bin/sh", script], {
    cwd: "/",
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  job.shim = child;
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { code: await child.exited, said: stdout + stderr };
}

describe("a shim in an allocation", () => {
  test("says where it runs, gives the job what the scheduler says, and ends with its code", async () => {
    const job = attempt(bash("env; exit 7"), { env: { PATH: "/usr/bin:/bin", SLURM_NTASKS: "mine", TMPDIR: "/var/tmp", OWN: "1" } });
    const { code, said } = await batch(job, { ...SLURM, SECRET: "x", CUDA_VISIBLE_DEVICES: "0,2", SLURMD_NODENAME: "n1" });
    expect({ code, said }).toEqual({ code: 7, said: "" });
    expect(readStart(job.directory)).toMatchObject({
      claimed_by: "shim",
      cgroup: null,
      allocation: { provider: "slurm", native_id: "4711", cluster: "pond", node: os.hostname() },
    });
    const environment = job.text("stdout.log").split("\n");
    for (const line of ["SLURM_JOB_ID=4711", "SLURM_NTASKS=mine", "CUDA_VISIBLE_DEVICES=0,2", "SLURMD_NODENAME=n1", "TMPDIR=/tmp", "OWN=1"])
      expect(environment).toContain(line);
    expect(environment.filter((line) => /^(?:SECRET|BUN_)/.test(line))).toEqual([]);
    expect(readExit(job.directory)).toMatchObject({ outcome: { reason: "exit_nonzero", exit_code: 7 } });
  });

  test("of Grid Engine is recognized, too", async () => {
    const job = attempt(bash("echo $NSLOTS $JOB_ID"));
    expect(await batch(job, { PATH: "/usr/bin:/bin", JOB_ID: "12", SGE_ROOT: "/opt/ge", NSLOTS: "4" })).toEqual({ code: 0, said: "" });
    expect(readStart(job.directory)).toMatchObject({ allocation: { provider: "gridengine", native_id: "12", cluster: null } });
    expect(job.text("stdout.log")).toBe("4 12\n");
  });

  test("that is started a second time, as after a requeue, runs nothing and ends well", async () => {
    const job = attempt(bash("echo ran >> ran; exit 3"));
    expect((await batch(job, SLURM)).code).toBe(3);
    const before = job.text("exit.json");
    expect(await batch(job, { ...SLURM, SLURM_RESTART_COUNT: "1" })).toEqual({ code: 0, said: "" });
    expect(job.text("exit.json")).toBe(before);
    expect(fs.readFileSync(path.join(job.workdir, "ran"), "utf8")).toBe("ran\n");
  });

  test("whose attempt the worker has taken back runs nothing and ends well", async () => {
    const job = attempt(bash("echo ran >> ran"));
    expect(voidAttempt(job.directory, "the scheduler had ended it")).toBe(true);
    expect(await batch(job, SLURM)).toEqual({ code: 0, said: "" });
    expect(fs.existsSync(path.join(job.workdir, "ran"))).toBe(false);
  });

  test("ends its job when the scheduler ends the allocation, and says so: a cancel with cancel.json, a signal without", async () => {
    for (const [cancel, reason] of [
      [true, "canceled"],
      [false, "signaled"],
    ] as const) {
      const job = attempt(bash("trap 'echo cleaned; exit 5' TERM; echo up; while :; do sleep 0.05; done"));
      const ended = batch(job, SLURM);
      await job.output("up");
      if (cancel) fs.writeFileSync(job.file("cancel.json"), "{}");
      job.shim!.kill("SIGTERM");
      expect((await ended).code).toBe(5);
      expect(readExit(job.directory)).toMatchObject({ outcome: { reason } });
      expect(job.text("stdout.log")).toBe("up\ncleaned\n");
    }
  });

  test("ends its job when cancel.json appears, without a signal", async () => {
    const job = attempt(bash("trap 'echo cleaned; exit 5' TERM; echo up; while :; do sleep 0.05; done"));
    const ended = batch(job, SLURM);
    await job.output("up");
    fs.writeFileSync(job.file("cancel.json"), "{}");
    expect((await ended).code).toBe(5);
    expect(readExit(job.directory)).toMatchObject({ outcome: { reason: "canceled" } });
  });

  test("hands on what a scheduler sends before the time is over", async () => {
    const job = attempt(bash("trap 'echo one' USR1; trap 'echo two; exit 6' USR2; echo up; while :; do sleep 0.05; done"));
    const ended = batch(job, SLURM);
    await job.output("up");
    job.shim!.kill("SIGUSR1");
    await job.output("one");
    job.shim!.kill("SIGUSR2");
    expect((await ended).code).toBe(6);
    expect(readExit(job.directory)).toMatchObject({ outcome: { reason: "exit_nonzero", exit_code: 6 } });
  });

  test("that has a job which a signal ends, ends with the code that a shell gives", async () => {
    expect((await batch(attempt(bash("kill -KILL $$")), SLURM)).code).toBe(128 + 9);
  });

  test("outside of an allocation is refused, and claims nothing", async () => {
    const job = attempt(bash("echo ran"));
    expect(await batch(job, { PATH: "/usr/bin:/bin", JOB_ID: "1" })).toEqual({ code: 78, said: "" });
    expect(job.text("shim.log")).toContain("not claimed: there is no allocation here");
    expect(readStart(job.directory)).toBeNull();
  });
});

describe("a batch script", () => {
  test("that cannot enter the directory, or execute the relay, says so and exits with 78", async () => {
    const job = attempt(bash("echo ran"));
    const gone = path.join(job.jobDir, "it's gone");
    // It waits some seconds for either; here no time passes.
    const tools = path.join(job.workdir, "tools");
    fs.mkdirSync(tools);
    fs.writeFileSync(path.join(tools, "sleep"), `#!/bin/sh\necho "$1" >> ${job.workdir}/slept\n`, { mode: 0o700 });
    const environment = { ...SLURM, PATH: `${tools}:/usr/bin:/bin` };
    const directory = await batch(job, environment, FROM_SOURCE, gone);
    const executable = await batch(attempt(bash("echo ran")), environment, ["/nowhere/clio relay"]);
    expect(fs.readFileSync(path.join(job.workdir, "slept"), "utf8")).toBe("1\n2\n4\n1\n2\n4\n");
    expect(directory.code).toBe(78);
    expect(directory.said).toContain(`the directory of the attempt cannot be entered on ${os.hostname()}: ${gone}`);
    expect(executable.code).toBe(78);
    expect(executable.said).toContain(`cannot be executed on ${os.hostname()}: /nowhere/clio relay`);
  });
});

test("variables that are no batch script's name no allocation", () => {
  for (const environment of [{}, { SLURM_JOB_ID: "" }, { JOB_ID: "7" }, { SGE_ROOT: "/opt/ge" }]) {
    expect(surroundings(environment, "n1")).toBeNull();
  }
});
