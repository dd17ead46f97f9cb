import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../lib/files/atomic-file.ts";

/** Name of a cgroup, or of the part of it that systemd makes for a scope, that holds one shim and its job and nothing else. */
export const SHIM_GROUP_PREFIX = "clio-relay-shim-";

/** The cgroup v2 directory of this process, or of the one that `proc` is of (cgroups(7)); null where there is none, and for one that has ended. */
export const ownCgroup = (proc?: string): string | null => groupOf(proc, "", " - cgroup2 ");

/** The same of version 1, in the hierarchy that bounds memory. */
export const ownMemoryGroupV1 = (proc?: string): string | null => groupOf(proc, "memory", " - cgroup ");

/**
 * @param controller as proc_pid_cgroup(5) names the hierarchy
 * @param type as a line of proc_pid_mountinfo(5) names the file system
 */
function groupOf(proc = "/proc/self", controller: string, type: string): string | null {
  try {
    const lines = fs.readFileSync(`${proc}/cgroup`, "utf8").split("\n");
    const fields = lines.map((line) => /^\d+:([^:]*):(\/.*)$/.exec(line)).find((found) => found?.[1]?.split(",").includes(controller));
    const group = fields?.[2];
    const mount = mountOf(fs.readFileSync(`${proc}/mountinfo`, "utf8"), type, controller);
    if (group === undefined || mount === null) return null;
    const below = path.relative(mount.root, group);
    return below.startsWith("..") ? null : path.join(mount.at, below);
  } catch (error) {
    // One that has ended and is not reaped has no mounts: EINVAL.
    if (isErrno(error, "ENOENT", "EACCES", "ESRCH", "EINVAL")) return null;
    throw error;
  }
}

/** Where a hierarchy is mounted, and which part of it (proc_pid_mountinfo(5), fields 4 and 5; the last one has its controllers). */
function mountOf(mountinfo: string, type: string, controller: string): { root: string; at: string } | null {
  for (const line of mountinfo.split("\n")) {
    if (!line.includes(type)) continue;
    const fields = line.split(" ");
    if (controller !== "" && !fields.at(-1)!.split(",").includes(controller)) continue;
    return { root: unescapePath(fields[3]!), at: unescapePath(fields[4]!) };
  }
  return null;
}

const unescapePath = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));

/** The same, when nobody but this process and its children can be in there; null otherwise. */
export function exclusiveCgroup(proc?: string): string | null {
  const group = ownCgroup(proc);
  return group !== null && path.basename(group).startsWith(SHIM_GROUP_PREFIX) ? group : null;
}

/**
 * Process ids in a cgroup and below it; empty when it is gone.
 *
 * @throws the system's error when it cannot be seen who is in it
 */
export function cgroupProcesses(group: string): number[] {
  const own = members(group);
  const below = entriesOf(group)
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => cgroupProcesses(path.join(group, entry.name)));
  return [...new Set([...own, ...below])];
}

/** A cgroup that the job has made a threaded one lists its threads only (cgroups(7)). */
function members(group: string): number[] {
  try {
    return numbersIn(path.join(group, "cgroup.procs"));
  } catch (error) {
    // One number has both names.
    if (!isErrno(error, "ENOTSUP", "EOPNOTSUPP")) throw error;
    return numbersIn(path.join(group, "cgroup.threads")).flatMap(threadGroup);
  }
}

function numbersIn(file: string): number[] {
  const text = unlessGone(() => fs.readFileSync(file, "latin1"));
  return (text ?? "").split("\n").filter(Boolean).map(Number);
}

const entriesOf = (group: string): fs.Dirent[] => unlessGone(() => fs.readdirSync(group, { withFileTypes: true })) ?? [];

/** The process of a thread (proc_pid_status(5), Tgid); none when it has ended. */
function threadGroup(thread: number): number[] {
  const status = unlessGone(() => fs.readFileSync(`/proc/${thread}/status`, "latin1"));
  const pid = /^Tgid:\s+(\d+)$/m.exec(status ?? "")?.[1];
  return pid === undefined ? [] : [Number(pid)];
}

/** Null when the file, the cgroup or the process is gone. Whatever else keeps it from being read is no sign of that. */
function unlessGone<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENODEV", "ESRCH")) return null;
    throw error;
  }
}

/** Whether nothing in a cgroup runs, because it or one above it was frozen (cgroup.events). False where that cannot be seen. */
export function isFrozen(group: string): boolean {
  try {
    return /^frozen 1$/m.test(fs.readFileSync(path.join(group, "cgroup.events"), "latin1"));
  } catch {
    return false;
  }
}

/** Kill everything in a cgroup at once, forks in progress included (cgroup.kill, Linux 5.14). False where that cannot be done. */
export function killCgroup(group: string): boolean {
  try {
    fs.writeFileSync(path.join(group, "cgroup.kill"), "1", { flag: "r+" });
    return true;
  } catch {
    return false;
  }
}

/** Remove an empty cgroup. False when it is not empty, or may not be removed. */
export function removeCgroup(group: string): boolean {
  try {
    fs.rmdirSync(group);
    return true;
  } catch (error) {
    return isErrno(error, "ENOENT");
  }
}

/**
 * A directory in which this process may make cgroups and move processes into them: its own cgroup v2 directory, when it is
 * writable (a delegated subtree, or root). Null where there is none.
 */
export function delegatedCgroup(group: string | null = ownCgroup()): string | null {
  if (group === null) return null;
  const probe = path.join(group, `clio-relay-probe-${process.pid}`);
  try {
    fs.accessSync(path.join(group, "cgroup.procs"), fs.constants.W_OK);
    fs.mkdirSync(probe);
    fs.rmdirSync(probe);
    return group;
  } catch {
    return null;
  }
}

/** Make a cgroup for one shim below a delegated directory. */
export function makeShimCgroup(parent: string, id: string): string {
  const group = path.join(parent, SHIM_GROUP_PREFIX + id);
  fs.mkdirSync(group);
  return group;
}

/** Put a process, and with it all that it will start, into a cgroup. The kernel takes up to some 20 ms for it. */
export const enterCgroup = (group: string, pid: number): Promise<void> =>
  fs.promises.writeFile(path.join(group, "cgroup.procs"), String(pid), { flag: "r+" });

/** A cgroup that was just made waits, empty, for its shim: it may be another worker's. */
const UNUSED_MS = 60_000;

/** Remove the shims' cgroups below a directory that are empty, and have not been made just now. Returns how many. */
export function sweepCgroups(parent: string, unusedMs = UNUSED_MS): number {
  let names: string[];
  try {
    names = fs.readdirSync(parent);
  } catch {
    return 0;
  }
  const isOld = (group: string): boolean => {
    const made = fs.statSync(group, { throwIfNoEntry: false })?.ctimeMs;
    return made !== undefined && Math.abs(Date.now() - made) >= unusedMs;
  };
  return names
    .filter((name) => name.startsWith(SHIM_GROUP_PREFIX))
    .map((name) => path.join(parent, name))
    .filter((group) => isOld(group) && removeCgroup(group)).length;
}
