import { afterEach, describe, expect, test } from "bun:test";
import { allProcesses, descendantsIn, descendantsOf, hasInitialVariable } from "../../src/execution/process-table.ts";
import { endJob, findJob } from "../../src/execution/processes.ts";
import { becomeSubreaper } from "../../src/lib/system/libc.ts";
import { bootId, type Identity, identify, isOver, type ProcessStat, processStat } from "../../src/lib/system/process-identity.ts";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { eventually } from "../runner/wait.ts";

const children: Bun.Subprocess[] = [];
const started: number[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill("SIGKILL");
    await child.exited;
  }
  for (const pid of started.splice(0)) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // gone
    }
  }
});

/** A shell in a session of its own; resolves once it has printed as many process ids as it was told to wait for. */
async function shell(script: string, env: Record<string, string>, ids: number): Promise<{ child: Bun.Subprocess; pids: number[] }> {
  const child = Bun.spawn(["/bin/bash", "-c", script], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
    env: { PATH: process.env["PATH"] ?? "", ...env },
    detached: true,
  });
  children.push(child);
  let text = "";
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.split("\n").length > ids) break;
  }
  const pids = text.trim().split("\n").map(Number);
  if (!pids.every((pid) => pid > 1)) throw new Error(`no process ids: ${text}`);
  started.push(...pids);
  return { child, pids };
}

const identityOf = (pid: number): Identity => {
  const identity = identify(pid);
  if (identity === null) throw new Error(`no process ${pid}`);
  return identity;
};
const mark = (): string => `job_${crypto.randomUUID().replaceAll("-", "")}/1`;
const stat = (pid: number, ppid: number): ProcessStat => ({ pid, ppid, state: "S", pgrp: pid, session: pid, threads: 1, start_time: 1 });

describe("the process table", () => {
  test("has this process and its parent", () => {
    const table = allProcesses();
    expect(table.find(({ pid }) => pid === process.pid)).toMatchObject({ ppid: process.ppid });
    expect(table.some(({ pid }) => pid === process.ppid)).toBe(true);
  });

  test("gives everything below a process, and no cycle keeps it", () => {
    const table = [stat(2, 1), stat(3, 2), stat(4, 3), stat(5, 1), stat(6, 7), stat(7, 6)];
    expect(descendantsIn(table, [2]).map(({ pid }) => pid)).toEqual([3, 4]);
    expect(
      descendantsIn(table, [1, 3])
        .map(({ pid }) => pid)
        .sort(),
    ).toEqual([2, 4, 5]);
    expect(descendantsIn(table, [6]).map(({ pid }) => pid)).toEqual([7]);
    expect(descendantsIn(table, [])).toEqual([]);
  });

  test("finds living descendants, those in other sessions included", async () => {
    const { child, pids } = await shell("setsid sleep 1000 & echo $!; sleep 1000 & echo $!; wait", {}, 2);
    const found = descendantsOf(child.pid).map(({ pid }) => pid);
    expect(found).toEqual(expect.arrayContaining(pids.slice(1)));
    expect(descendantsOf(process.pid).map(({ pid }) => pid)).toEqual(expect.arrayContaining(found));
  });

  test("tells initial variables by whole name and value", async () => {
    const { child } = await shell("echo $$; sleep 1000", { CLIO_RELAY_ATTEMPT: "job_a/12", OTHER: "CLIO_RELAY_ATTEMPT=job_b/1" }, 1);
    // While the shell becomes `sleep` (execve), the kernel shows an empty environment.
    expect(await eventually(() => hasInitialVariable(child.pid, "CLIO_RELAY_ATTEMPT", "job_a/12"))).toBe(true);
    expect(hasInitialVariable(child.pid, "CLIO_RELAY_ATTEMPT", "job_a/1")).toBe(false);
    expect(hasInitialVariable(child.pid, "CLIO_RELAY_ATTEMPT", "job_b/1")).toBe(false);
    expect(hasInitialVariable(child.pid, "RELAY_ATTEMPT", "job_a/12")).toBe(false);
    expect(hasInitialVariable(2 ** 22 + 1, "A", "b")).toBe(false);
  });

  test("a main thread that ended before the others is not the end", () => {
    expect(isOver({ state: "Z", threads: 3 })).toBe(false);
    expect(isOver({ state: "Z", threads: 1 })).toBe(true);
    expect(isOver({ state: "X", threads: 0 })).toBe(true);
    expect(isOver({ state: "D", threads: 1 })).toBe(false);
  });
});

describe("a job's processes", () => {
  test("are those with its mark, in its session, and below them; nobody else", async () => {
    const mine = mark();
    const other = mark();
    const job = await shell("setsid sleep 1000 & echo $!; env -i /bin/sleep 1000 & echo $!; wait", { CLIO_RELAY_ATTEMPT: mine }, 2);
    const stranger = await shell("sleep 1000 & echo $!; wait", { CLIO_RELAY_ATTEMPT: other }, 1);
    const found = findJob({ mark: mine, process: identityOf(job.child.pid), cgroup: null });
    const pids = found.owned.map(({ pid }) => pid);
    expect(pids).toEqual(expect.arrayContaining([job.child.pid, job.pids[1]!]));
    expect(pids.length).toBeGreaterThanOrEqual(3);
    expect(pids).not.toContain(stranger.child.pid);
    expect(pids).not.toContain(process.pid);
    expect(found.doubtful).toEqual([]);
    expect(findJob({ mark: mark(), process: null, cgroup: null })).toEqual({ owned: [], doubtful: [] });
  });

  test("in a session whose leader is gone are proven by one member's mark", async () => {
    const mine = mark();
    const { child, pids } = await shell("sleep 1000 & echo $!; env -i /bin/sleep 1000 & echo $!; exit", { CLIO_RELAY_ATTEMPT: mine }, 2);
    const identity: Identity = { pid: child.pid, start_time: processStat(child.pid)?.start_time ?? 1, boot_id: bootId(), hostname: "h" };
    await child.exited;
    const found = findJob({ mark: mine, process: identity, cgroup: null });
    expect(found.owned.map(({ pid }) => pid).sort()).toEqual([...pids].sort());
    expect(found.doubtful).toEqual([]);
  });

  test("without any proof are named and not touched", async () => {
    const { child, pids } = await shell("env -i /bin/sleep 1000 & echo $!; exit", { CLIO_RELAY_ATTEMPT: mark() }, 1);
    const identity: Identity = { pid: child.pid, start_time: 1, boot_id: bootId(), hostname: "h" };
    await child.exited;
    await eventually(() => processStat(pids[0]!)?.session === child.pid && hasInitialVariable(pids[0]!, "PATH", "") === false, {
      what: "the exec of sleep",
    });
    const job = { mark: mark(), process: identity, cgroup: null };
    expect(findJob(job)).toMatchObject({ owned: [], doubtful: [{ pid: pids[0] }] });
    expect(await endJob(job, 100)).toEqual(pids);
    expect(identify(pids[0]!)).not.toBeNull();
  });

  test("of a recycled process id, or of another boot, are not the job's", async () => {
    const { child } = await shell("echo $$; sleep 1000", {}, 1);
    const real = identityOf(child.pid);
    const recycled = { ...real, start_time: real.start_time - 1 };
    expect(findJob({ mark: mark(), process: recycled, cgroup: null })).toEqual({ owned: [], doubtful: [] });
    const otherBoot = { ...real, boot_id: "00000000-0000-0000-0000-000000000000" };
    expect(findJob({ mark: mark(), process: otherBoot, cgroup: null })).toEqual({ owned: [], doubtful: [] });
    expect(await endJob({ mark: mark(), process: recycled, cgroup: null }, 100)).toEqual([]);
    expect(identify(child.pid)).not.toBeNull();
  });

  test("are all ended: TERM first, then KILL", async () => {
    const mine = mark();
    const { child } = await shell(
      "trap 'touch /dev/null' TERM; (trap '' TERM; sleep 1000) & echo $!; while :; do sleep 0.05; done",
      {
        CLIO_RELAY_ATTEMPT: mine,
      },
      1,
    );
    expect(await endJob({ mark: mine, process: identityOf(child.pid), cgroup: null }, 200)).toEqual([]);
    expect(findJob({ mark: mine, process: null, cgroup: null }).owned).toEqual([]);
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
  });

  test("is broken off where its caller has to go, and can be done again", async () => {
    const mine = mark();
    const { child } = await shell("trap '' TERM; echo $$; while :; do sleep 0.02; done", { CLIO_RELAY_ATTEMPT: mine }, 1);
    const job = { mark: mine, process: identityOf(child.pid), cgroup: null };
    const leaving = new AbortController();
    const ending = endJob(job, 3_600_000, systemClock, leaving.signal);
    leaving.abort(new Error("draining"));
    await expect(ending).rejects.toThrow("draining");
    expect(identify(child.pid)).not.toBeNull();
    expect(await endJob(job, 50)).toEqual([]);
    expect(identify(child.pid)).toBeNull();
  });
});

test("becoming a subreaper is possible here", () => {
  expect(becomeSubreaper()).toBe(true);
});
