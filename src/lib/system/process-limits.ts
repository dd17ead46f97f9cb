import fs from "node:fs";

/** A limit of the system keeps this process from doing its work; the message names it. */
export class SystemLimit extends Error {}

/** The name of RLIMIT_AS, `ulimit -v`. */
export const ADDRESS_SPACE = "Max address space";

/** A soft limit of this process by its name in proc_pid_limits(5); null where there is none, or it cannot be seen. */
export function softLimit(name: string): number | null {
  try {
    const line = fs
      .readFileSync("/proc/self/limits", "utf8")
      .split("\n")
      .find((each) => each.startsWith(name));
    const limit = Number(line?.slice(name.length).trim().split(/\s+/)[0]);
    return Number.isFinite(limit) ? limit : null;
  } catch {
    return null;
  }
}
