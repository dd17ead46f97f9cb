import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import { readProcess, writeCancel } from "../../src/execution/attempt-dir.ts";
import { descendantsOf } from "../../src/execution/process-table.ts";
import { identify, isOver, processStat } from "../../src/lib/system/process-identity.ts";
import { eventually } from "../runner/wait.ts";
import { bash, FROM_SOURCE, sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts();
const withoutPidfd = testAttempts(["/usr/bin/env", "BUN_FEATURE_FLAG_FORCE_WAITER_THREAD=1", ...FROM_SOURCE]);
type Attempt = ReturnType<typeof attempt>;

const cancel = (job: Attempt): void => {
  writeCancel(job.directory, new Date().toISOString());
  process.kill(job.shim!.pid, "SIGTERM");
};

/** Process ids that a job has written to a file, one a line, once there are so many. */
const pids = (job: Attempt, file: string, count: number): Promise<number[]> =>
  eventually(
    () => {
      const found = fs.readFileSync(`${job.workdir}/${file}`, "utf8").split("\n").filter(Boolean).map(Number);
      return found.length >= count ? found : null;
    },
    { what: `${count} process ids in ${file}`, everyMs: 5 },
  );

const noneRuns = (found: readonly number[]): void => {
  for (const pid of found) expect(identify(pid), `process ${pid}`).toBeNull();
};

describe("what the first process leaves is ended with it", () => {
  test("a process in the background", async () => {
    const job = attempt(sh("sleep 1000 & echo $! > left; exit 7"));
    const exit = await job.run();
    expect(exit).toMatchObject({ leftover: 1, outcome: { reason: "exit_nonzero", exit_code: 7, residual: [] } });
    noneRuns(await pids(job, "left", 1));
  });

  test("a daemon that forked twice, began a session, and closed its streams", async () => {
    const job = attempt(
      bash("(setsid bash -c 'echo $BASHPID > left; exec sleep 1000 <&- >&- 2>&-' &) ; until [ -s left ]; do sleep 0.01; done; echo up"),
    );
    const exit = await job.run();
    expect(exit).toMatchObject({ leftover: 1, outcome: { reason: "completed" } });
    expect(exit.streams.stdout).toMatchObject({ kept: 3, complete: true });
    noneRuns(await pids(job, "left", 1));
  });

  test("a daemon without the job's environment", async () => {
    const job = attempt(
      bash("(setsid env -i /bin/bash -c 'echo $BASHPID > left; exec /bin/sleep 1000' &) ; until [ -s left ]; do sleep 0.01; done"),
    );
    expect(await job.run()).toMatchObject({ leftover: 1, outcome: { reason: "completed" } });
    noneRuns(await pids(job, "left", 1));
  });

  test("one that does not listen to TERM, after the grace period", async () => {
    const job = attempt(sh("(trap '' TERM; echo up > ready; while :; do sleep 0.05; done) & until [ -s ready ]; do sleep 0.01; done"), {
      cancel_grace_seconds: 0.3,
    });
    const exit = await job.run();
    expect(exit.outcome).toMatchObject({ reason: "completed", residual: [] });
    expect(exit.leftover).toBeGreaterThanOrEqual(1);
    expect(job.processes()).toEqual([]);
  });

  test("one that is stopped", async () => {
    const job = attempt(bash("sleep 1000 & echo $! > left; kill -STOP $!"), { cancel_grace_seconds: 5 });
    expect(await job.run()).toMatchObject({ leftover: 1, outcome: { reason: "completed" } });
    noneRuns(await pids(job, "left", 1));
  });

  test("a chain of processes, each of which starts the next and ends", async () => {
    const job = attempt(sh("echo 'sh ./next & exit' > next; echo \"echo run >> ran; sh ./next & exit\" > next; sh ./next; sleep 0.3"), {
      cancel_grace_seconds: 0.2,
    });
    const exit = await job.run();
    expect(exit.outcome).toMatchObject({ reason: "completed", residual: [] });
    expect(job.processes()).toEqual([]);
    const ran = fs.statSync(`${job.workdir}/ran`).size;
    expect(ran).toBeGreaterThan(0);
    // Nobody is there to add to it any more.
    expect(fs.statSync(`${job.workdir}/ran`).size).toBe(ran);
  });
});

describe("a job that ended by itself while its shim was stopped ended as it did", () => {
  /** Stop the shim, and let the job end meanwhile. */
  async function endUnseen(job: Attempt): Promise<void> {
    job.start();
    await job.output("up");
    const { process: first } = await job.started();
    process.kill(job.shim!.pid, "SIGSTOP");
    fs.writeFileSync(`${job.workdir}/go`, "");
    await eventually(() => isOver(processStat(first.pid)!), { what: "the end of the first process", everyMs: 5 });
  }
  const waits = (code: number): string[] => sh(`echo up; until [ -e go ]; do sleep 0.01; done; exit ${code}`);

  test("whatever its time limit says afterwards", async () => {
    const job = attempt(waits(0), { timeout_seconds: 3 });
    await endUnseen(job);
    const began = performance.now();
    await eventually(() => performance.now() - began > 3_000, { what: "the time limit" });
    process.kill(job.shim!.pid, "SIGCONT");
    expect((await job.exit()).outcome).toMatchObject({ reason: "completed", exit_code: 0, message: "exited with code 0" });
  });

  test("though a cancel came meanwhile", async () => {
    const job = attempt(waits(3));
    await endUnseen(job);
    cancel(job);
    process.kill(job.shim!.pid, "SIGCONT");
    expect((await job.exit()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
  });

  test("though the machine went down meanwhile", async () => {
    const job = attempt(waits(0));
    await endUnseen(job);
    process.kill(job.shim!.pid, "SIGTERM");
    process.kill(job.shim!.pid, "SIGCONT");
    expect((await job.exit()).outcome).toMatchObject({ reason: "completed", exit_code: 0 });
  });
});

describe("a time limit", () => {
  test("ends everything, and what handlers say on TERM is still recorded", async () => {
    const job = attempt(sh("trap 'echo cleaned up; exit 0' TERM; sleep 1000 & echo $! > left; echo up; wait"), {
      timeout_seconds: 2.5,
      cancel_grace_seconds: 30,
    });
    const exit = await job.run();
    expect(exit.outcome).toMatchObject({ reason: "timeout", exit_code: 0, residual: [] });
    expect(exit.outcome.message).toContain("2.5 s");
    expect(job.text("stdout.log")).toBe("up\ncleaned up\n");
    noneRuns(await pids(job, "left", 1));
  });

  test("longer than timers can be does not strike", async () => {
    const exit = await attempt(sh("sleep 0.2"), { timeout_seconds: 366 * 86_400 }).run();
    expect(exit.outcome.reason).toBe("completed");
  });
});

describe("TERM to the shim", () => {
  test("is a cancel when cancel.json says so", async () => {
    const job = attempt(sh("sleep 1000 & echo $! > left; echo $$ >> left; wait"));
    job.start();
    const started = await pids(job, "left", 2);
    cancel(job);
    const exit = await job.exit();
    expect(exit.outcome).toMatchObject({ reason: "canceled", exit_code: null, signal: "SIGTERM", residual: [] });
    expect(exit.leftover).toBe(1);
    noneRuns(started);
  });

  test("kills what ignores it, after the grace period", async () => {
    const job = attempt(sh("trap '' TERM; echo up; while :; do sleep 0.05; done"), { cancel_grace_seconds: 0.3 });
    job.start();
    await job.output("up");
    cancel(job);
    expect((await job.exit()).outcome).toMatchObject({ reason: "canceled", signal: "SIGKILL", residual: [] });
    expect(job.processes()).toEqual([]);
  });

  test("lets a handler run programs while it cleans up", async () => {
    const job = attempt(sh("trap 'sleep 0.3; touch cleaned; exit 0' TERM; echo up; while :; do sleep 0.05; done"), {
      cancel_grace_seconds: 30,
    });
    job.start();
    await job.output("up");
    cancel(job);
    expect((await job.exit()).outcome).toMatchObject({ reason: "canceled", exit_code: 0 });
    expect(fs.existsSync(`${job.workdir}/cleaned`)).toBe(true);
  });

  test.each([{ first_alone_seconds: 30 }, { first_alone_seconds: 2, deaf: true }])(
    "is the first process's alone for as long as that takes, and for so long (%j)",
    async ({ first_alone_seconds, deaf = false }) => {
      const leave = `kill -0 $child && echo alone${deaf ? "" : "; exit 3"}`;
      const job = attempt(bash(`sleep 1000 & child=$!; trap '${leave}' TERM; echo $child > left; echo up; while :; do wait; done`), {
        first_alone_seconds,
        cancel_grace_seconds: 0.3,
      });
      job.start();
      await job.output("up");
      cancel(job);
      const exit = await job.exit();
      expect(exit.outcome).toMatchObject({ reason: "canceled", residual: [] });
      if (!deaf) expect(exit.outcome.exit_code).toBe(3);
      expect(job.text("stdout.log")).toContain("alone\n");
      noneRuns(await pids(job, "left", 1));
    },
  );

  test("without cancel.json ends the job as signaled", async () => {
    const job = attempt(sh("echo up; sleep 1000"));
    job.start();
    await job.output("up");
    process.kill(job.shim!.pid, "SIGTERM");
    expect((await job.exit()).outcome).toMatchObject({ reason: "signaled", signal: "SIGTERM", residual: [] });
    expect(job.processes()).toEqual([]);
  });

  test("does not change how a job ended that ended before", async () => {
    const job = attempt(sh("(trap '' TERM; echo up > ready; sleep 1000) & until [ -s ready ]; do sleep 0.01; done; exit 0"), {
      cancel_grace_seconds: 1,
    });
    job.start();
    const { process: first } = await job.started();
    await eventually(() => identify(first.pid) === null, { what: "the end of the first process", everyMs: 5 });
    cancel(job);
    expect((await job.exit()).outcome).toMatchObject({ reason: "completed", exit_code: 0 });
  });

  test("HUP is passed over", async () => {
    const job = attempt(sh("echo up; sleep 0.4; echo done"));
    job.start();
    await job.output("up");
    process.kill(job.shim!.pid, "SIGHUP");
    expect((await job.exit()).outcome.reason).toBe("completed");
    expect(job.text("stdout.log")).toBe("up\ndone\n");
  });
});

test("a cancel that was written before the shim claimed keeps the job from starting", async () => {
  const job = attempt(sh("touch ran"));
  writeCancel(job.directory, new Date().toISOString());
  const exit = await job.run();
  expect(exit.outcome.reason).toBe("canceled");
  expect(exit.started_at).toBeNull();
  expect(readProcess(job.directory)).toBeNull();
  expect(fs.existsSync(`${job.workdir}/ran`)).toBe(false);
});

test("processes that the shim adopted do not pile up as zombies while the job runs", async () => {
  const job = attempt(bash("for i in $(seq 50); do (sleep 0.01 & ); done; echo forked; read line < gate"));
  expect(Bun.spawnSync(["mkfifo", `${job.workdir}/gate`]).exitCode).toBe(0);
  const shim = job.start();
  await job.output("forked");
  await eventually(() => descendantsOf(shim.pid).length === 1, { what: "only the first process below the shim" });
  fs.writeFileSync(`${job.workdir}/gate`, "end\n");
  expect(await job.exit()).toMatchObject({ leftover: 0, outcome: { reason: "completed" } });
});

test("the end of the first process is noticed without pidfd_open, whatever else ended before", async () => {
  const job = withoutPidfd(bash("(sleep 0.1 &); (sleep 0.2 &); sleep 0.5; exit 4"));
  expect((await job.run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 4 });
});
