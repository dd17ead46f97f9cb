import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { memoryKills } from "../../src/execution/shim/memory-kills.ts";
import type { Allocation } from "../../src/execution/spool-records.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();
const slurm: Allocation = { provider: "slurm", native_id: "12", cluster: null, node: "n1" };

/** A process' directory below proc, in a group of hierarchies whose files are these. */
function site(version: 1 | 2, group: string, files: Readonly<Record<string, string>>): string {
  const root = temporary();
  const mount = path.join(root, "groups");
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(mount, name)), { recursive: true });
    fs.writeFileSync(path.join(mount, name), text);
  }
  const line = version === 2 ? `30 23 0:26 / ${mount} rw - cgroup2 cgroup2 rw` : `25 1 0:20 / ${mount} rw - cgroup cgroup rw,memory`;
  fs.writeFileSync(path.join(root, "cgroup"), version === 2 ? `0::${group}\n` : `4:memory:${group}\n1:cpu:/else\n0::/\n`);
  fs.writeFileSync(path.join(root, "mountinfo"), `24 1 0:19 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n${line}\n`);
  return root;
}

const events = (kills: number): string => `low 0\nhigh 0\nmax 7\noom 3\noom_kill ${kills}\noom_group_kill 0\n`;
const control = (kills: number): string => `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`;

test("are counted of all steps of a job of SLURM's on this node", () => {
  const job = "/slurmstepd.scope/job_12/step_batch/user/task_0";
  const unified = { "slurmstepd.scope/job_12/memory.events": events(2), [`.${job}/memory.events`]: events(1) };
  expect(memoryKills(slurm, site(2, job, unified))).toBe(2);
  const separate = {
    "slurm/uid_0/job_12/memory.oom_control": control(0),
    "slurm/uid_0/job_12/step_batch/task_0/memory.oom_control": control(1),
    "slurm/uid_0/job_12/step_0/memory.oom_control": control(3),
    "slurm/uid_0/job_13/memory.oom_control": control(9),
  };
  expect(memoryKills(slurm, site(1, "/slurm/uid_0/job_12/step_batch/task_0", separate))).toBe(4);
});

test("are not those of a group that is not the job's alone, nor of one that says nothing", () => {
  expect(
    memoryKills(slurm, site(2, "/system.slice/sge_execd.service", { "system.slice/sge_execd.service/memory.events": events(5) })),
  ).toBe(0);
  expect(memoryKills(slurm, site(2, "/a/job_13", { "a/job_13/memory.events": events(5) }))).toBe(0);
  expect(memoryKills(slurm, site(2, "/a/job_12", { "a/job_12/memory.events": "oom_kill many\n" }))).toBe(0);
  expect(memoryKills(slurm, site(2, "/a/job_12", {}))).toBe(0);
  expect(memoryKills(slurm, path.join(temporary(), "gone"))).toBe(0);
});

test("on the worker's host are those of the shim's own scope or cgroup", () => {
  const scope = "a/clio-relay-shim-17.scope";
  expect(memoryKills(undefined, site(2, `/${scope}`, { [`${scope}/memory.events`]: events(1) }))).toBe(1);
  expect(memoryKills(undefined, site(2, "/a/worker.service", { "a/worker.service/memory.events": events(1) }))).toBe(0);
});
