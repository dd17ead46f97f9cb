import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { readStart } from "../../src/execution/attempt-dir.ts";
import {
  cgroupProcesses,
  delegatedCgroup,
  enterCgroup,
  exclusiveCgroup,
  killCgroup,
  makeShimCgroup,
  ownCgroup,
  removeCgroup,
  sweepCgroups,
} from "../../src/execution/cgroup.ts";
import { directSpawner, SHIM_ENVIRONMENT, spawnDetached } from "../../src/execution/direct-spawner.ts";
import type { ShimSpawner } from "../../src/execution/launcher.ts";
import { endJob } from "../../src/execution/processes.ts";
import { SpareShimLauncher } from "../../src/execution/spare-pool.ts";
import { identify, processStat } from "../../src/lib/system/process-identity.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { bash, FROM_SOURCE, SPARE_SPOOL, testAttempts } from "./attempts.ts";

const temporary = temporaryDirectories();

describe("reading where a process is", () => {
  const proc = (cgroup: string, mountinfo: string): string => {
    const directory = temporary();
    fs.writeFileSync(path.join(directory, "cgroup"), cgroup);
    fs.writeFileSync(path.join(directory, "mountinfo"), mountinfo);
    return directory;
  };
  const unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

  test("on a unified hierarchy", () => {
    expect(ownCgroup(proc("0::/user.slice/x.scope\n", unified))).toBe("/sys/fs/cgroup/user.slice/x.scope");
    expect(ownCgroup(proc("0::/\n", unified))).toBe("/sys/fs/cgroup");
  });

  test("beside version 1, with a blank in the mount point, and from within a container", () => {
    const hybrid = `25 1 0:20 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 1 0:27 / /mnt/my\\040groups rw - cgroup2 none rw\n`;
    expect(ownCgroup(proc("4:memory:/a\n1:cpu:/b\n0::/c\n", hybrid))).toBe("/mnt/my groups/c");
    const bound = "31 1 0:27 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
    expect(ownCgroup(proc("0::/docker/abc/job\n", bound))).toBe("/sys/fs/cgroup/job");
    expect(ownCgroup(proc("0::/elsewhere\n", bound))).toBeNull();
  });

  test("where there is none", () => {
    expect(ownCgroup(proc("4:memory:/a\n", unified))).toBeNull();
    expect(ownCgroup(proc("0::/a\n", "25 1 0:20 / / rw - ext4 /dev/vda rw\n"))).toBeNull();
    expect(ownCgroup("/no/such/proc")).toBeNull();
  });

  test("one that has ended has none, reaped or not", async () => {
    const child = Bun.spawn(["/bin/sh", "-c", "sleep 0 & echo $!; exec sleep 600"], { stdin: "ignore", stdout: "pipe" });
    const { value } = await child.stdout.getReader().read();
    const unreaped = Number(new TextDecoder().decode(value));
    await eventually(() => processStat(unreaped)?.state === "Z" || null);
    expect(() => fs.readFileSync(`/proc/${unreaped}/mountinfo`)).toThrow("EINVAL");
    expect(ownCgroup(`/proc/${unreaped}`)).toBeNull();
    child.kill();
    await child.exited;
    expect(ownCgroup(`/proc/${child.pid}`)).toBeNull();
  });

  test("a shim's own is known by its name", () => {
    expect(exclusiveCgroup(proc("0::/a/clio-relay-shim-17.scope\n", unified))).toBe("/sys/fs/cgroup/a/clio-relay-shim-17.scope");
    expect(exclusiveCgroup(proc("0::/a/clio-relay-worker.service\n", unified))).toBeNull();
  });

  test("what is not writable is not delegated", () => {
    expect(delegatedCgroup(null)).toBeNull();
    expect(delegatedCgroup("/no/such/group")).toBeNull();
    expect(cgroupProcesses("/no/such/group")).toEqual([]);
    expect(killCgroup("/no/such/group")).toBe(false);
    expect(removeCgroup("/no/such/group")).toBe(true);
    expect(sweepCgroups("/no/such/group")).toBe(0);
  });
});

test("a cgroup that cannot be read is not an empty one", () => {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-cgroup-"));
  try {
    // Stands for whatever the system may say other than that it is gone.
    fs.mkdirSync(path.join(temporary, "cgroup.procs"));
    expect(() => cgroupProcesses(temporary)).toThrow("EISDIR");
    fs.rmdirSync(path.join(temporary, "cgroup.procs"));
    expect(cgroupProcesses(temporary)).toEqual([]);
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true });
  }
});

describeWith("cgroup", "cgroups", () => {
  const attempt = testAttempts();
  const groups: string[] = [];
  afterEach(async () => {
    for (const group of groups.splice(0)) {
      killCgroup(group);
      await eventually(() => removeCgroup(group), { what: `the removal of ${group}` });
    }
  });

  test("hold a shim with its job, daemons without environment included, and end it whole", async () => {
    const parent = delegatedCgroup()!;
    const launcher = new SpareShimLauncher(directSpawner({ command: FROM_SOURCE, cgroupParent: parent }), {
      spares: 1,
      spool: SPARE_SPOOL,
    });
    await eventually(() => launcher.waiting === 1, { what: "a spare" });
    const job = attempt(bash("(setsid env -i /bin/sleep 1000 &) ; trap '' TERM; echo up; while :; do sleep 0.05; done"));
    const shim = await launcher.launch(job.directory);
    await job.output("up");
    await launcher.close();
    const start = readStart(job.directory);
    if (start === null || start === "torn" || start.claimed_by !== "shim") throw new Error("not claimed by a shim");
    const group = start.cgroup!;
    expect(path.dirname(group)).toBe(parent);
    const { process: first } = await job.started();
    const inside = await eventually(() => (cgroupProcesses(group).length >= 3 ? cgroupProcesses(group) : null), { what: "the daemon" });
    expect(inside).toContain(shim.pid);
    expect(inside).toContain(first.pid);
    expect(inside).not.toContain(process.pid);

    process.kill(shim.pid, "SIGKILL");
    await shim.exited;
    expect(await endJob({ mark: job.mark, process: first, cgroup: group }, 100)).toEqual([]);
    for (const pid of inside) expect(identify(pid)).toBeNull();
    expect(fs.existsSync(group)).toBe(false);
  });

  test("are entered before the attempt is claimed, however late that is", async () => {
    const group = makeShimCgroup(delegatedCgroup()!, crypto.randomUUID());
    groups.push(group);
    const job = attempt(["sleep", "1"]);
    const late: ShimSpawner = {
      async spawn(args, logFile) {
        const shim = spawnDetached([...FROM_SOURCE, ...args], SHIM_ENVIRONMENT, logFile);
        // Time enough for a shim that does not wait.
        await Promise.race([shim.exited, Bun.sleep(500)]);
        await enterCgroup(group, shim.pid);
        return shim;
      },
    };
    await (await new SpareShimLauncher(late, { spares: 0, spool: SPARE_SPOOL }).launch(job.directory)).exited;
    expect(readStart(job.directory)).toMatchObject({ claimed_by: "shim", cgroup: group });
  });

  test("go with the shim that they were made for", async () => {
    const parent = makeShimCgroup(delegatedCgroup()!, `parent-${crypto.randomUUID()}`);
    groups.push(parent);
    const launcher = new SpareShimLauncher(directSpawner({ command: FROM_SOURCE, cgroupParent: parent }), {
      spares: 1,
      spool: SPARE_SPOOL,
    });
    const made = (): string[] => fs.readdirSync(parent).filter((name) => name.startsWith("clio-relay-shim-"));
    await eventually(() => launcher.waiting === 1 && made().length === 1, { what: "a spare in its cgroup" });
    const job = attempt(bash("(setsid sleep 1000 &) ; true"));
    await (await launcher.launch(job.directory)).exited;
    expect(await job.exit()).toMatchObject({ leftover: 1, outcome: { reason: "completed" } });
    await launcher.close();
    await eventually(() => made().length === 0, { what: "the removal of the cgroups" });
  });

  test("are named by the claim that a spare has made, though it was put there later", async () => {
    const parent = makeShimCgroup(delegatedCgroup()!, `named-${crypto.randomUUID()}`);
    groups.push(parent);
    const spool = temporary();
    const launcher = new SpareShimLauncher(directSpawner({ command: FROM_SOURCE, cgroupParent: parent }), { spares: 1, spool });
    const claims = (): string[] => fs.readdirSync(spool).filter((name) => name.startsWith(".start.json."));
    const named = await eventually(
      () => claims().map((name) => JSON.parse(fs.readFileSync(path.join(spool, name), "utf8")).cgroup as string | null)[0] ?? null,
      { what: "a claim in its cgroup" },
    );
    expect(path.dirname(named)).toBe(parent);
    expect(claims().length).toBe(1);
    await launcher.close();
    expect(claims()).toEqual([]);
  });

  test("that the job made threaded ones are looked into all the same", async () => {
    const parent = makeShimCgroup(delegatedCgroup()!, `threaded-${crypto.randomUUID()}`);
    groups.push(parent);
    const child = Bun.spawn(["sleep", "1000"], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    const group = makeShimCgroup(parent, "job");
    groups.unshift(group);
    await enterCgroup(parent, child.pid);
    fs.writeFileSync(path.join(group, "cgroup.type"), "threaded", { flag: "r+" });
    fs.writeFileSync(path.join(group, "cgroup.threads"), String(child.pid), { flag: "r+" });
    expect(() => fs.readFileSync(path.join(group, "cgroup.procs"))).toThrow("ENOTSUP");
    expect(cgroupProcesses(group)).toEqual([child.pid]);
    expect(cgroupProcesses(parent)).toEqual([child.pid]);
    child.kill("SIGKILL");
    await child.exited;
    expect(cgroupProcesses(group)).toEqual([]);
  });

  test("are swept when they are empty, and only then", async () => {
    const parent = makeShimCgroup(delegatedCgroup()!, `sweep-${crypto.randomUUID()}`);
    groups.push(parent);
    const used = makeShimCgroup(parent, "used");
    makeShimCgroup(parent, "empty");
    fs.mkdirSync(path.join(parent, "foreign"));
    const child = Bun.spawn(["sleep", "1000"], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    await enterCgroup(used, child.pid);
    // One that was just made may be about to get its shim.
    expect(sweepCgroups(parent)).toBe(0);
    expect(sweepCgroups(parent, 0)).toBe(1);
    expect(fs.existsSync(used)).toBe(true);
    expect(cgroupProcesses(parent)).toEqual([child.pid]);
    expect(killCgroup(used)).toBe(true);
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    await eventually(() => removeCgroup(used), { what: "the removal of an empty cgroup" });
    fs.rmdirSync(path.join(parent, "foreign"));
  });
});
