import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { exclusiveCgroup, ownCgroup, ownMemoryGroupV1 } from "../cgroup.ts";
import type { Allocation } from "../spool-records.ts";

/**
 * How many processes of this shim's job the kernel has ended because memory ran out: in its own cgroup, or in that which a scheduler gives a job on a node. 0 also
 * where there is no such group, so that nobody can tell whose processes they were.
 *
 * @param proc directory of the shim's process (proc(5))
 */
export function memoryKills(allocation: Allocation | undefined, proc?: string): number {
  if (allocation === undefined) return killsIn(exclusiveCgroup(proc));
  return killsIn(jobGroup(ownCgroup(proc), allocation)) || killsIn(jobGroup(ownMemoryGroupV1(proc), allocation));
}

/** The group of all steps of a job, which slurmd (cgroup.conf(5)) calls by its number. */
function jobGroup(group: string | null, { native_id }: Allocation): string | null {
  const names = group?.split("/") ?? [];
  const at = names.lastIndexOf(`job_${native_id}`);
  return at < 0 ? null : names.slice(0, at + 1).join("/");
}

/** Version 2 counts for a group what happens below it, also in groups that are gone; version 1 for each group alone. */
function killsIn(group: string | null): number {
  if (group === null) return 0;
  const events = counted(path.join(group, "memory.events"));
  if (events !== null) return events;
  const below = unlessClosed(() => fs.readdirSync(group, { withFileTypes: true })) ?? [];
  const groups = below.filter((entry) => entry.isDirectory()).map((entry) => path.join(group, entry.name));
  return groups.reduce((sum, each) => sum + killsIn(each), counted(path.join(group, "memory.oom_control")) ?? 0);
}

/** `oom_kill` of a file of flat keys; null where there is none. */
function counted(file: string): number | null {
  const text = unlessClosed(() => fs.readFileSync(file, "latin1"));
  const count = /^oom_kill (\d{1,9})$/m.exec(text ?? "")?.[1];
  return count === undefined ? null : Number(count);
}

/** Null for what is not there, or not for this user to see. */
function unlessClosed<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENODEV", "EACCES", "EPERM")) return null;
    throw error;
  }
}
