import fs from "node:fs";
import os from "node:os";
import { isErrno } from "../files/atomic-file.ts";
import { startOfProcess as startOnDarwin } from "./darwin.ts";
import { startOfProcess as startOnWindows } from "./windows.ts";

/**
 * A process that a recycled pid is never taken for. `start_time` is in clock ticks since boot on Linux, in milliseconds since 1970 elsewhere; 0 where
 * the system does not tell.
 */
export interface Identity {
  readonly pid: number;
  readonly start_time: number;
  readonly boot_id: string;
  readonly hostname: string;
}

/** What proc_pid_stat(5) says of a process. */
export interface ProcessStat {
  readonly pid: number;
  /** One letter; Z is a zombie, X is dead. */
  readonly state: string;
  readonly ppid: number;
  readonly pgrp: number;
  readonly session: number;
  readonly threads: number;
  readonly start_time: number;
}

let cachedBootId: string | undefined;

/** Stands for the boot on systems that name none: their start times tell by themselves. */
const NO_BOOT = "none";

/** Identifier of the current boot: `none` elsewhere than on Linux, empty where its /proc does not tell. */
export function bootId(): string {
  if (process.platform !== "linux") return NO_BOOT;
  if (cachedBootId === undefined) {
    try {
      cachedBootId = fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    } catch {
      cachedBootId = "";
    }
  }
  return cachedBootId;
}

/** Read /proc/PID/stat; null when there is no such process. */
export function processStat(pid: number): ProcessStat | null {
  let line: string;
  try {
    // Under qemu-user a process that asks for its own gets an invention, with another start time than others see; not by this path.
    line = fs.readFileSync(`/proc/./${pid}/stat`, "latin1");
  } catch (error) {
    if (isErrno(error, "ENOENT", "ESRCH")) return null;
    throw error;
  }
  // The second field is the command in parentheses and may itself hold spaces and parentheses.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return {
    pid,
    state: fields[0] ?? "?",
    ppid: Number(fields[1]),
    pgrp: Number(fields[2]),
    session: Number(fields[3]),
    threads: Number(fields[17]),
    start_time: Number(fields[19]),
  };
}

/** Whether a process has ended and only its entry is left. A main thread that ended before the others looks like a zombie and is none. */
export const isOver = (stat: Pick<ProcessStat, "state" | "threads">): boolean =>
  stat.state === "X" || (stat.state === "Z" && stat.threads <= 1);

/** The identity of a running process; null when there is none (a zombie counts as none). */
export function identify(pid: number): Identity | null {
  if (process.platform !== "linux") {
    const start = startElsewhere(pid);
    return start === null ? null : { pid, start_time: start, boot_id: NO_BOOT, hostname: os.hostname() };
  }
  const stat = processStat(pid);
  if (stat === null || isOver(stat)) return null;
  return { pid, start_time: stat.start_time, boot_id: bootId(), hostname: os.hostname() };
}

/** The identity of this process. */
export function self(): Identity {
  const identity = identify(process.pid);
  if (identity === null) throw new Error("this process cannot be found");
  return identity;
}

/** Whether exactly this process still runs. Only meaningful on the host that the identity names. */
export function isAlive(identity: Identity): boolean {
  if (identity.boot_id !== bootId()) return false;
  const current = identify(identity.pid);
  return current !== null && current.start_time === identity.start_time;
}

/** Where there is no /proc: when a process started; null when it does not run. */
function startElsewhere(pid: number): number | null {
  if (process.platform === "win32") return startOnWindows(pid);
  if (!pidExists(pid)) return null;
  return process.platform === "darwin" ? startOnDarwin(pid) : 0;
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isErrno(error, "EPERM");
  }
}
