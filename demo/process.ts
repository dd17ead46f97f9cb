import fs from "node:fs";

/** A process, told apart from a later one with its id by its start (field 22 of proc_pid_stat(5)). */
export interface Process {
  readonly pid: number;
  readonly start_time: number;
}

/** Whether it is there, and not a zombie. */
export function alive(target: Process): boolean {
  const fields = statOf(target.pid);
  return fields !== null && fields[0] !== "Z" && Number(fields[19]) === target.start_time;
}

/** The processes that come from a process, from first to last, and that run the same program by its name. */
export function likeChildrenOf(pid: number): number[] {
  const alike = processes().filter((child) => nameOf(child).startsWith(nameOf(pid)));
  const below = (parent: number): number[] =>
    alike.filter((child) => Number(statOf(child)?.[1]) === parent).flatMap((child) => [child, ...below(child)]);
  return below(pid);
}

/** Every process of this machine. */
export const processes = (): number[] =>
  fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

/** Wait until a process is gone, 10 s at most. */
export async function gone(pid: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (Date.now() < deadline) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await Bun.sleep(20);
  }
}

/** SIGKILL, for a process that may be gone meanwhile. */
export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone
  }
}

/** What the kernel calls it (proc_pid_comm(5)). */
function nameOf(pid: number): string {
  try {
    return fs.readFileSync(`/proc/${pid}/comm`, "latin1").trim();
  } catch {
    return "gone";
  }
}

/** The fields from the state on. */
function statOf(pid: number): string[] | null {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
