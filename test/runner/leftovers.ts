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
  const mark = `${name}=${value === null ? "" : `${value}\0`}`;
  return others(({ environment }) => environment.startsWith(mark) || environment.includes(`\0${mark}`)).map((process) => {
    const variable = process.environment.split("\0").find((line) => line.startsWith(`${name}=`))!;
    return { ...process, value: variable.slice(name.length + 1) };
  });
}

interface Other {
  readonly pid: number;
  readonly command: string;
  readonly environment: string;
}

/** The processes besides this one that can be looked at, and that are what the test says. */
function others(test: (process: Other & { readonly cwd: string }) => boolean): Other[] {
  const found: Other[] = [];
  for (const entry of fs.existsSync("/proc/self") ? fs.readdirSync("/proc") : []) {
    if (!/^\d+$/.test(entry) || Number(entry) === process.pid) continue;
    try {
      const environment = fs.readFileSync(`/proc/${entry}/environ`, "utf8");
      const command = fs.readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      const other = { pid: Number(entry), command, environment };
      if (test({ ...other, cwd: fs.readlinkSync(`/proc/${entry}/cwd`) })) found.push({ ...other, command: command.slice(0, 200) });
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

/** Processes that know a directory: by their environment, their arguments, or because they are in it. */
const processesBelow = (directory: string): Other[] =>
  others(({ command, environment, cwd }) => [command, environment, cwd].some((trace) => trace.includes(directory)));

/** How long what is left may take to end by itself, on a machine that does ten other things; milliseconds. */
const GRACE_MS = 10_000;

/**
 * End what a file's tests left behind, after giving it a moment to end by itself: what descends from the run, and what knows the directory of
 * its temporary files, as shims and jobs do, who have nothing of the environment. Returns one line for each process that did not.
 */
export async function endLeftovers(run: string, directory: string): Promise<string[]> {
  const look = (): Map<number, string> =>
    new Map([...processesMarked(RUN_MARK, run), ...processesBelow(directory)].map(({ pid, command }) => [pid, command]));
  const deadline = performance.now() + GRACE_MS;
  let left = look();
  while (left.size > 0 && performance.now() < deadline) {
    await Bun.sleep(50);
    left = look();
  }
  for (const pid of left.keys()) kill(pid);
  return [...left].map(([pid, command]) => `process ${pid} ${command}`);
}

/** Unmount what is mounted below a directory (proc_pid_mountinfo(5)). Returns one line for each. */
export function unmountLeftovers(directory: string): string[] {
  if (!fs.existsSync("/proc/self/mountinfo")) return [];
  const mounted = fs
    .readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => (line.split(" ")[4] ?? "").replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))))
    .filter((point) => point.startsWith(`${directory}/`));
  // The innermost first.
  for (const point of mounted.toReversed()) Bun.spawnSync(["umount", "-l", point]);
  return mounted.map((point) => `mount ${point}`);
}
