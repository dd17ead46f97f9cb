import fs from "node:fs";

/** Marks everything that descends from one run of the tests. */
export const RUN_MARK = "CLIO_RELAY_TEST_RUN";

/** Processes whose initial environment holds `name=value` (proc_pid_environ(5)). Empty where there is no /proc. */
export function processesMarked(name: string, value: string): { pid: number; command: string }[] {
  const mark = Buffer.from(`${name}=${value}\0`);
  const found: { pid: number; command: string }[] = [];
  for (const entry of fs.existsSync("/proc/self") ? fs.readdirSync("/proc") : []) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      if (!fs.readFileSync(`/proc/${entry}/environ`).includes(mark)) continue;
      const command = fs.readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      found.push({ pid: Number(entry), command: command.slice(0, 200) });
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
