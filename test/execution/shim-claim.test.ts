import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { readExit, readProcess, readStart, voidAttempt, writeExit } from "../../src/execution/attempt-dir.ts";
import { endJob, findJob } from "../../src/execution/processes.ts";
import type { ExitRecord } from "../../src/execution/spool-records.ts";
import { removeAbandoned } from "../../src/lib/files/abandoned-files.ts";
import { identify, isAlive } from "../../src/lib/system/process-identity.ts";
import { eventually } from "../runner/wait.ts";
import { bash, FROM_SOURCE, SPARE_SPOOL, sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts();

const shimOn = (directory: string): Bun.Subprocess =>
  Bun.spawn([...FROM_SOURCE, "__shim", directory], { stdin: "ignore", stdout: "ignore", stderr: "ignore", detached: true, env: {} });

describe("of several starters of one attempt", () => {
  test("exactly one runs the job, the others leave without a trace", async () => {
    const job = attempt(sh("echo ran >> ran; sleep 0.2"));
    const shims = Array.from({ length: 12 }, () => shimOn(job.directory));
    await Promise.all(shims.map((shim) => shim.exited));
    expect(shims.map((shim) => shim.exitCode)).toEqual(shims.map(() => 0));
    expect(fs.readFileSync(`${job.workdir}/ran`, "utf8")).toBe("ran\n");
    const start = readStart(job.directory);
    if (start === null || start === "torn" || start.claimed_by !== "shim") throw new Error("not claimed by a shim");
    expect(shims.map(({ pid }) => pid)).toContain(start.shim.pid);
    expect(await job.exit()).toMatchObject({ outcome: { reason: "completed" } });
    expect(fs.readdirSync(job.directory).filter((name) => name.includes("tmp"))).toEqual([]);
  });

  test("a worker that voids it, or a shim: never both, never neither", async () => {
    let voided = 0;
    for (let round = 0; round < 12; round++) {
      const job = attempt(sh("echo ran >> ran"));
      const shim = job.start();
      // Somewhere in the time that a shim takes to start; sooner and later by turns.
      await Bun.sleep(round * 4);
      const won = voidAttempt(job.directory, "a test");
      if (won) voided++;
      await shim.exited;
      expect(fs.existsSync(`${job.workdir}/ran`)).toBe(!won);
      expect(readExit(job.directory) === null).toBe(won);
      expect(readStart(job.directory)).toMatchObject({ claimed_by: won ? "worker" : "shim" });
      expect(voidAttempt(job.directory, "again")).toBe(won);
    }
    expect(voided).toBeGreaterThan(0);
  });

  test("a shim that comes too late does nothing", async () => {
    const job = attempt(sh("echo ran >> ran"));
    await job.run();
    const before = job.text("exit.json");
    const late = shimOn(job.directory);
    await late.exited;
    expect(late.exitCode).toBe(0);
    expect(job.text("exit.json")).toBe(before);
    expect(fs.readFileSync(`${job.workdir}/ran`, "utf8")).toBe("ran\n");
  });

  test("a shim on a directory that is not there claims nothing", async () => {
    const job = attempt(["true"]);
    const shim = shimOn(`${job.directory}-elsewhere`);
    expect(await shim.exited).toBe(1);
    expect(fs.existsSync(`${job.directory}-elsewhere`)).toBe(false);
  });

  test("arguments that are no attempt are refused", async () => {
    for (const args of [[], ["a", "b"], [""], ["--spare", ""], ["--spare", "a", "b"]]) {
      const shim = Bun.spawn([...FROM_SOURCE, "__shim", ...args], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
      expect(await shim.exited).toBe(2);
    }
  });
});

describe("a spare shim", () => {
  const spare = (spool = SPARE_SPOOL) =>
    Bun.spawn([...FROM_SOURCE, "__shim", "--spare", spool], { stdin: "pipe", stdout: "ignore", stderr: "ignore", detached: true, env: {} });

  test("runs the attempt that it is told", async () => {
    const job = attempt(sh("echo ran"));
    const shim = spare();
    shim.stdin.write(`${job.directory}\n`);
    await shim.stdin.end();
    expect(await shim.exited).toBe(0);
    expect((await job.exit()).outcome.reason).toBe("completed");
    expect(readStart(job.directory)).toMatchObject({ shim: { pid: shim.pid } });
  });

  test("rehearses a start, of which nothing is left: no file, no open file, no process", async () => {
    const spool = fs.mkdtempSync(path.join(SPARE_SPOOL, "rehearsing-"));
    const shim = spare(spool);
    const own = (): string[] => fs.readdirSync(spool).map((name) => name.replace(/^\.(\w+)\..*$/, "$1"));
    // Only once it waits: the rehearsal comes after the files.
    await eventually(() => fs.readFileSync(`/proc/${shim.pid}/task/${shim.pid}/children`, "utf8") === "" && waitsForLine(shim.pid), {
      what: "a spare that waits",
    });
    expect(own().sort()).toEqual(["exit", "process", "start", "stderr", "stdout"]);
    const open = fs.readdirSync(`/proc/${shim.pid}/fd`).map((fd) => fs.readlinkSync(`/proc/${shim.pid}/fd/${fd}`));
    expect(open.filter((file) => file.startsWith("pipe:") || file.includes("rehearsal"))).toEqual([]);
    await shim.stdin.end();
    expect(await shim.exited).toBe(0);
    expect(own()).toEqual([]);
  });

  /** Whether a thread of it reads standard input (proc_pid_syscall(5)); read(2) has number 0 on x86-64, 63 on arm64. */
  const waitsForLine = (pid: number): boolean =>
    fs.readdirSync(`/proc/${pid}/task`).some((task) => /^(?:0|63) 0x0 /.test(fs.readFileSync(`/proc/${pid}/task/${task}/syscall`, "utf8")));

  test("has made its files before it is told, and leaves nothing of them", async () => {
    const job = attempt(sh("echo ran"));
    const spool = path.join(job.root, "spares");
    fs.mkdirSync(spool);
    const shim = spare(spool);
    await eventually(() => fs.readdirSync(spool).filter((name) => name.endsWith(".tmp")).length === 5, { what: "the prepared files" });
    shim.stdin.write(`${job.directory}\n`);
    await shim.stdin.end();
    await shim.exited;
    expect(readStart(job.directory)).toMatchObject({ shim: { pid: shim.pid } });
    expect(fs.readdirSync(spool)).toEqual([]);
    const unneeded = spare(spool);
    await eventually(() => fs.readdirSync(spool).filter((name) => name.endsWith(".tmp")).length === 5, { what: "the prepared files" });
    await unneeded.stdin.end();
    await unneeded.exited;
    expect(fs.readdirSync(spool)).toEqual([]);
  });

  test.each(["/dev/shm", "/no/such/spool", "/proc"])(
    "claims all the same when its claim cannot wait beside the attempt (%s)",
    async (spool) => {
      const job = attempt(sh("echo ran"));
      const shim = spare(spool);
      shim.stdin.write(`${job.directory}\n`);
      await shim.stdin.end();
      expect(await shim.exited).toBe(0);
      expect(readStart(job.directory)).toMatchObject({ shim: { pid: shim.pid } });
      expect((await job.exit()).outcome.reason).toBe("completed");
    },
  );

  test("that was killed is swept up after, one that lives is not", async () => {
    const spool = path.join(attempt(sh("true")).root, "spares");
    fs.mkdirSync(spool);
    const [killed, living] = [spare(spool), spare(spool)];
    await eventually(() => fs.readdirSync(spool).filter((name) => name.includes(".json.")).length === 6, {
      what: "the prepared files of both",
    });
    killed.kill("SIGKILL");
    await killed.exited;
    removeAbandoned(spool);
    expect(fs.readdirSync(spool).filter((name) => name.includes(".json.")).length).toBe(3);
    await living.stdin.end();
    await living.exited;
    expect(fs.readdirSync(spool)).toEqual([]);
  });

  test("is told in pieces as well", async () => {
    const job = attempt(sh("echo ran"));
    const shim = spare();
    for (const piece of [job.directory.slice(0, 10), job.directory.slice(10), "\n"]) {
      shim.stdin.write(piece);
      await shim.stdin.flush();
      await Bun.sleep(20);
    }
    expect(await shim.exited).toBe(0);
    expect(readExit(job.directory)).toMatchObject({ outcome: { reason: "completed" } });
  });

  test("ends, having done nothing, when its input ends or TERM comes", async () => {
    const unused = spare();
    await unused.stdin.end();
    expect(await unused.exited).toBe(0);
    const cut = spare();
    cut.stdin.write("/half/a/line");
    await cut.stdin.end();
    expect(await cut.exited).toBe(0);
    const asked = spare();
    await eventually(
      () => fs.readFileSync(`/proc/${asked.pid}/status`, "utf8").match(/SigCgt:\s*[0-9a-f]*[4567cdef][0-9a-f]{3}$/m) ?? null,
      {
        what: "a handler of TERM",
      },
    );
    asked.kill("SIGTERM");
    expect(await asked.exited).toBe(0);
  });
});

describe("when the shim is killed", () => {
  const stream = { observed: 3, kept: 3, dropped: 0, truncated: null, complete: false, sha256: null };
  const lost: ExitRecord = {
    record_version: 1,
    outcome: { reason: "outcome_unknown", exit_code: null, signal: null, message: "the shim was killed", residual: [] },
    started_at: null,
    ended_at: "2026-01-02T03:04:05.678Z",
    streams: { stdout: stream, stderr: stream },
    usage: null,
    leftover: 0,
  };

  test("the job is found by its record and its mark, and ended", async () => {
    const job = attempt(bash("trap 'echo bye' TERM; (setsid sleep 1000 &); sleep 1000 & echo up; wait; sleep 1000"), {});
    job.start();
    await job.output("up");
    const { process: first } = await job.started();
    job.shim!.kill("SIGKILL");
    await job.shim!.exited;
    expect(isAlive(first)).toBe(true);
    const found = findJob({ mark: job.mark, process: first, cgroup: null });
    expect(found.owned.length).toBeGreaterThanOrEqual(3);
    expect(found.doubtful).toEqual([]);
    expect(await endJob({ mark: job.mark, process: first, cgroup: null }, 200)).toEqual([]);
    expect(isAlive(first)).toBe(false);
    expect(job.processes()).toEqual([]);
    expect(readExit(job.directory)).toBeNull();
    expect(writeExit(job.directory, lost)).toBe(true);
    expect(readExit(job.directory)).toEqual(lost);
    expect(fs.readdirSync(job.directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    // What the shim had taken in is there.
    expect(job.text("stdout.log")).toBe("up\n");
  });

  test("the job is found by its mark alone", async () => {
    const job = attempt(sh("echo up; sleep 1000 & sleep 1000"));
    job.start();
    await job.output("up");
    job.shim!.kill("SIGKILL");
    await job.shim!.exited;
    expect(await endJob({ mark: job.mark, process: null, cgroup: null }, 1_000)).toEqual([]);
    expect(job.processes()).toEqual([]);
  });

  test("its job goes on until somebody ends it: writing fails it no sooner than the pipe breaks", async () => {
    const job = attempt(sh("echo up; while :; do sleep 0.05; done"));
    job.start();
    await job.output("up");
    const { process: first } = await job.started();
    job.shim!.kill("SIGKILL");
    await job.shim!.exited;
    expect(identify(first.pid)?.start_time).toBe(first.start_time);
  });
});

test("SIGKILL of the job's first process is recorded, and the rest of it ended", async () => {
  const job = attempt(sh("sleep 1000 & echo up; wait"));
  job.start();
  await job.output("up");
  process.kill(readProcess(job.directory)!.process.pid, "SIGKILL");
  expect(await job.exit()).toMatchObject({ leftover: 1, outcome: { reason: "signaled", signal: "SIGKILL", residual: [] } });
  expect(job.processes()).toEqual([]);
});
