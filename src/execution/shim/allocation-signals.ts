import fs from "node:fs";
import path from "node:path";
import { isThere } from "../../lib/files/file-system.ts";
import { FILES } from "../spool-records.ts";
import type { TermSignal } from "./term-signal.ts";

/** How often an allocation's shim looks whether somebody cancels its job: not every scheduler can send it a signal. */
const LOOK_MS = 1_000;

/** What a scheduler sends ahead of the end of the time (sbatch(1), --signal; qsub(1), s_rt); a batch script gets it for its job. */
const PASSED = ["SIGUSR1", "SIGUSR2"] as const;

/** Signals that are the job's. They are taken from the beginning on, since they would end the shim, and go to the job's first process once there is one. */
export class PassedSignals {
  #pid: number | null = null;

  constructor() {
    for (const signal of PASSED) process.on(signal, () => this.#pass(signal));
  }

  /** To whom they go; null where there is nobody. */
  to(pid: number | null): void {
    this.#pid = pid;
  }

  #pass(signal: NodeJS.Signals): void {
    if (this.#pid === null) return;
    try {
      process.kill(this.#pid, signal);
    } catch {
      // It has ended.
    }
  }
}

/** `term`, which also comes when cancel.json is there. */
export function termOrCancel(term: TermSignal, directory: string): TermSignal {
  const { promise, resolve } = Promise.withResolvers<void>();
  const state = { received: false, promise };
  const end = (): void => {
    state.received = true;
    resolve();
    clearInterval(timer);
  };
  const timer = setInterval(() => {
    if (isCanceled(directory)) end();
  }, LOOK_MS);
  void term.promise.then(end);
  return state;
}

/** The directory is opened by its name each time: only that makes NFS ask its server. */
function isCanceled(directory: string): boolean {
  try {
    fs.closeSync(fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY | fs.constants.O_NOFOLLOW));
    return isThere(path.join(directory, FILES.cancel));
  } catch {
    return false;
  }
}
