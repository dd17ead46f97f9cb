import { isErrno } from "../lib/files/atomic-file.ts";
import type { ProcessStat } from "../lib/system/process-identity.ts";
import type { Clock } from "../lib/waiting/clock.ts";

/** How long KILL is repeated before what is left counts as residual. */
export const FORCED_MS = 30_000;

/** Pauses between the first looks; later ones are LAST_PAUSE_MS apart. */
const PAUSES_MS = [1, 2, 4, 8, 15, 25, 50];
const LAST_PAUSE_MS = 100;

export interface EndProcessesOptions {
  /** Processes that are to end and still run. Called again and again; must not fail because one ended meanwhile. */
  readonly find: () => readonly ProcessStat[];
  readonly graceMs: number;
  readonly forcedMs?: number;
  /** Called once, when the grace period is over and something is left. */
  readonly onForced?: () => void;
  readonly clock: Clock;
  /** Aborting it stops looking after them: whatever still runs got TERM, and not yet KILL. */
  readonly signal?: AbortSignal | undefined;
  readonly pause?: (ms: number) => Promise<unknown>;
  readonly kill?: (pid: number, signal: NodeJS.Signals) => void;
}

export interface EndedProcesses {
  /** Processes that got a signal. */
  readonly signaled: ReadonlySet<number>;
  /** Those that still run. */
  readonly residual: readonly number[];
}

/**
 * End processes and all that they start meanwhile: TERM once to each that is found at first (and CONT, so that a stopped one gets
 * it), so that handlers can clean up; after the grace period KILL to everything, again and again, until none is left or
 * `forcedMs` are over. Returns early when nothing that is left can be signaled.
 *
 * @throws the reason of `signal` when that is aborted
 */
export async function endProcesses(options: EndProcessesOptions): Promise<EndedProcesses> {
  const { find, graceMs, clock } = options;
  const pause = options.pause ?? ((ms: number) => Bun.sleep(ms));
  const kill = options.kill ?? ((pid: number, signal: NodeJS.Signals) => void process.kill(pid, signal));
  const signaled = new Set<number>();
  const refused = new Set<number>();
  const send = (pid: number, signal: NodeJS.Signals): void => {
    try {
      kill(pid, signal);
      signaled.add(pid);
    } catch (error) {
      if (isErrno(error, "EPERM")) refused.add(pid);
      else if (!isErrno(error, "ESRCH")) throw error;
    }
  };

  const begin = clock.monotonic();
  let left = find();
  for (let sweep = 0; graceMs > 0 && sweep < 2; sweep++) {
    for (const { pid } of left) {
      if (signaled.has(pid)) continue;
      send(pid, "SIGTERM");
      send(pid, "SIGCONT");
    }
    left = find();
  }
  const deadline = begin + graceMs + (options.forcedMs ?? FORCED_MS);
  let forced = false;
  for (let look = 0; left.length > 0; look++) {
    options.signal?.throwIfAborted();
    const now = clock.monotonic();
    if (now >= deadline || left.every(({ pid }) => refused.has(pid))) break;
    if (now >= begin + graceMs) {
      if (!forced) {
        forced = true;
        look = 0;
        options.onForced?.();
      }
      for (const { pid } of left) send(pid, "SIGKILL");
    }
    await pause(PAUSES_MS[look] ?? LAST_PAUSE_MS);
    left = find();
  }
  return { signaled, residual: left.map(({ pid }) => pid) };
}
