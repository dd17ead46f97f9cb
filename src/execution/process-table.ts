import fs from "node:fs";
import { isErrno } from "../lib/files/atomic-file.ts";
import { isOver, type ProcessStat, processStat } from "../lib/system/process-identity.ts";

/**
 * Every process that this user can look at (proc(5)). Those that end meanwhile are left out, and those that the system hides
 * (hidepid), which are other users'.
 */
export function allProcesses(): ProcessStat[] {
  const found: ProcessStat[] = [];
  for (const name of fs.readdirSync("/proc")) {
    if (!/^[1-9]\d*$/.test(name)) continue;
    const stat = visibleStat(Number(name));
    if (stat !== null && stat !== "hidden") found.push(stat);
  }
  return found;
}

function visibleStat(pid: number): ProcessStat | "hidden" | null {
  try {
    return processStat(pid);
  } catch (error) {
    if (isErrno(error, "EACCES", "EPERM")) return "hidden";
    throw error;
  }
}

/** Everything below the given processes in the tree, zombies included, themselves excluded. */
export function descendantsIn(table: readonly ProcessStat[], roots: Iterable<number>): ProcessStat[] {
  const children = new Map<number, ProcessStat[]>();
  for (const stat of table) {
    const siblings = children.get(stat.ppid);
    if (siblings === undefined) children.set(stat.ppid, [stat]);
    else siblings.push(stat);
  }
  const seen = new Set<number>(roots);
  const queue = [...seen];
  const found: ProcessStat[] = [];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    for (const child of children.get(pid) ?? []) {
      if (seen.has(child.pid)) continue;
      seen.add(child.pid);
      found.push(child);
      queue.push(child.pid);
    }
  }
  return found;
}

/** Children of one process, from the kernel's own lists (proc_pid_children(5)); null when the process is gone. */
function childrenOf(pid: number): number[] | null {
  const children: number[] = [];
  try {
    for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
      const list = fs.readFileSync(`/proc/${pid}/task/${task}/children`, "latin1");
      for (const child of list.split(" ")) if (child !== "") children.push(Number(child));
    }
  } catch (error) {
    if (isErrno(error, "ENOENT", "ESRCH")) return null;
    if (isErrno(error, "EACCES", "EPERM")) return [];
    throw error;
  }
  return children;
}

const MAX_WALKS = 10;

/**
 * Everything below one living process, zombies included. A process that ends while its children are looked at hands them over to
 * somebody who may have been looked at before, so a walk that met one is repeated.
 */
export function descendantsOf(root: number): ProcessStat[] {
  if (!fs.existsSync(`/proc/${root}/task/${root}/children`)) return descendantsIn(allProcesses(), [root]);
  for (let walk = 1; ; walk++) {
    const { found, disturbed } = walkBelow(root);
    if (!disturbed) return found;
    if (walk === MAX_WALKS) return descendantsIn(allProcesses(), [root]);
  }
}

function walkBelow(root: number): { found: ProcessStat[]; disturbed: boolean } {
  const found: ProcessStat[] = [];
  const queue = [root];
  const seen = new Set<number>(queue);
  let disturbed = false;
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    const children = childrenOf(pid);
    if (children === null) disturbed = true;
    for (const child of children ?? []) {
      if (seen.has(child)) continue;
      seen.add(child);
      const stat = visibleStat(child);
      if (stat === null) {
        disturbed = true;
        continue;
      }
      // A set-user-id program that hides itself still runs.
      const shown = stat === "hidden" ? { pid: child, state: "?", ppid: pid, pgrp: 0, session: 0, threads: 1, start_time: 0 } : stat;
      found.push(shown);
      // What has ended has handed its children over already.
      if (!isOver(shown)) queue.push(child);
    }
  }
  return { found, disturbed };
}

/** Whether a process was started with NAME=value in its environment; null when that cannot be read. */
export function hasInitialVariable(pid: number, name: string, value: string): boolean | null {
  let environment: Buffer;
  try {
    environment = fs.readFileSync(`/proc/${pid}/environ`);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ESRCH")) return false;
    if (isErrno(error, "EACCES", "EPERM")) return null;
    throw error;
  }
  const entry = Buffer.from(`${name}=${value}\0`);
  for (let at = environment.indexOf(entry); at !== -1; at = environment.indexOf(entry, at + 1)) {
    if (at === 0 || environment[at - 1] === 0) return true;
  }
  return false;
}

/** What a variable held in the environment that a process was started with; null where it held none, or that cannot be read. */
export function initialVariable(pid: number, name: string): string | null {
  try {
    const entries = fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return entries.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ESRCH", "EACCES", "EPERM")) return null;
    throw error;
  }
}
