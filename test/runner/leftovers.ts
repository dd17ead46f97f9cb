import fs from "node:fs";

/** Marks everything that descends from one run of the tests. */
export const RUN_MARK = "CLIO_RELAY_TEST_RUN";

/** A process that was started with a variable in its environment. */
export interface Marked {
  readonly pid: number;
  readonly command: string;
  /** What the variable says. */
  readonly value: string;
}

/**
 * Processes whose initial environment has the variable (proc_pid_environ(5)), those that are over left out. Empty where there is no /proc.
 *
 * @param value what it has to say; null for anything
 */
export function processesMarked(name: string, value: string | null): Marked[] {
  const mark = Buffer.from(`${name}=${value === null ? "" : `${value}\0`}`);
  const found: Marked[] = [];
  for (const entry of fs.existsSync("/proc/self") ? fs.readdirSync("/proc") : []) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      const environment = fs.readFileSync(`/proc/${entry}/environ`);
      if (!environment.includes(mark)) continue;
      const variable = environment
        .toString()
        .split("\0")
        .find((line) => line.startsWith(`${name}=`));
      if (variable === undefined) continue;
      const command = fs.readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      found.push({ pid: Number(entry), command: command.slice(0, 200), value: variable.slice(name.length + 1) });
    } catch {
      // gone meanwhile, or somebody else's
    }
  }
  return found;
}

/** SIGKILL, for a process that may be gone meanwhile. */
export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone
  }
}

/** End what a run left behind, after giving it a moment to end by itself. Returns one line for each process that did not. */
export async function endLeftovers(run: string, graceMs = 3_000): Promise<string[]> {
  const deadline = performance.now() + graceMs;
  let left = processesMarked(RUN_MARK, run);
  while (left.length > 0 && performance.now() < deadline) {
    await Bun.sleep(50);
    left = processesMarked(RUN_MARK, run);
  }
  for (const { pid } of left) kill(pid);
  return left.map(({ pid, command }) => `${pid} ${command}`);
}
