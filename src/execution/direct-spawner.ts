import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../lib/files/atomic-file.ts";
import { FEW_THREADS } from "../lib/system/few-threads.ts";
import { enterCgroup, makeShimCgroup, removeCgroup } from "./cgroup.ts";
import type { ShimProcess, ShimSpawner } from "./launcher.ts";

/** What a shim gets as its environment: nothing of the worker's. The job's comes from spec.json alone. */
export const SHIM_ENVIRONMENT: Readonly<Record<string, string>> = { PATH: "/usr/local/bin:/usr/bin:/bin", ...FEW_THREADS };

export interface DirectSpawnerOptions {
  /** The relay's executable with leading arguments, so that adding `__shim …` makes a shim. */
  readonly command: readonly string[];
  /** A delegated cgroup directory, below which every shim gets one of its own; null where there is none. */
  readonly cgroupParent: string | null;
  readonly environment?: Readonly<Record<string, string>>;
  /** Told when a shim could not get its cgroup; it runs without. */
  readonly onTrouble?: (message: string, error: unknown) => void;
}

/**
 * Shims as children that outlive their parent: in a session of their own, with no file descriptor and no variable of the worker.
 * Where a service manager ends every process of the worker's unit, the unit has to say otherwise (KillMode=process).
 */
export function directSpawner(options: DirectSpawnerOptions): ShimSpawner {
  return {
    async spawn(args, logFile) {
      const group = options.cgroupParent === null ? null : makeGroup(options.cgroupParent, options.onTrouble);
      const shim = spawnDetached([...options.command, ...args], options.environment ?? SHIM_ENVIRONMENT, logFile);
      if (group !== null) {
        try {
          await enterCgroup(group, shim.pid);
        } catch (error) {
          if (!isErrno(error, "ESRCH")) options.onTrouble?.("the shim stays in the worker's cgroup", error);
        }
        // What a killed shim leaves in it is ended, and the cgroup removed, by whoever settles the attempt.
        void shim.exited.then(() => removeCgroup(group));
      }
      return shim;
    },
  };
}

function makeGroup(parent: string, onTrouble: DirectSpawnerOptions["onTrouble"]): string | null {
  try {
    return makeShimCgroup(parent, crypto.randomUUID());
  } catch (error) {
    onTrouble?.("no cgroup for the shim", error);
    return null;
  }
}

/** Start a process in a session of its own, which this one does not wait for. */
export function spawnDetached(argv: readonly string[], environment: Readonly<Record<string, string>>, logFile: string | null): ShimProcess {
  const output = logFile === null ? "ignore" : openPrivate(logFile);
  try {
    const child = Bun.spawn([...argv], {
      cwd: "/",
      env: { ...environment },
      stdin: "pipe",
      stdout: output,
      stderr: output,
      detached: true,
    });
    child.unref();
    const lives = (): boolean => child.exitCode === null && child.signalCode === null;
    const told = async (line: string, then: () => unknown): Promise<boolean> => {
      if (!lives()) return false;
      try {
        child.stdin.write(`${line}\n`);
        await then();
        return lives();
      } catch (error) {
        if (isErrno(error, "EPIPE", "ECONNRESET", "ESHUTDOWN")) return false;
        throw error;
      }
    };
    return {
      pid: child.pid,
      exited: child.exited.then(() => undefined),
      say: (line) => told(line, () => child.stdin.flush()),
      tell: (line) => told(line, () => child.stdin.end()),
      dismiss() {
        void Promise.resolve(child.stdin.end()).catch(() => undefined);
      },
      kill() {
        child.kill("SIGKILL");
      },
    };
  } finally {
    if (typeof output === "number") fs.closeSync(output);
  }
}

const openPrivate = (file: string): number =>
  fs.openSync(path.resolve(file), fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_APPEND, 0o600);
