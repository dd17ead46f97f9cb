import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { makePrivateDirectory } from "../lib/files/atomic-file.ts";
import { putAside } from "./stderr-file.ts";

const POLL_MS = 15;

export interface BackgroundStart {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** The attempt that this process belongs to, as CLIO_RELAY_ATTEMPT names it; undefined outside of jobs. */
  readonly withinAttempt: string | undefined;
  /** Gets the process's standard error. */
  readonly stderrFile: string;
  /** Whether the process does what it was started for. */
  readonly ready: () => Promise<boolean>;
  readonly withinMs: number;
}

/** How a start went: ready, ended by itself before it was, or still on its way when the time was over. */
export type BackgroundOutcome =
  | { readonly state: "ready"; readonly pid: number }
  | { readonly state: "late"; readonly pid: number }
  | { readonly state: "ended"; readonly exitCode: number | null; readonly said: string };

/**
 * Start a process that outlives this one: in a session of its own, with no terminal, its standard error in a file.
 *
 * @throws RelayError not_within_job where this process is part of a job: whatever it starts ends with the job
 */
export async function startInBackground(start: BackgroundStart): Promise<BackgroundOutcome> {
  if (start.withinAttempt !== undefined) {
    throw new RelayError("not_within_job", `what job ${start.withinAttempt} starts in the background would end with it`, {
      attempt: start.withinAttempt,
    });
  }
  makePrivateDirectory(path.dirname(start.stderrFile));
  // A process that still has it goes on in a new one when it writes.
  putAside(start.stderrFile);
  const before = fs.statSync(start.stderrFile, { throwIfNoEntry: false })?.size ?? 0;
  const fd = fs.openSync(start.stderrFile, "a", 0o600);
  const child = Bun.spawn([...start.command], {
    cwd: start.cwd,
    env: start.environment,
    stdin: "ignore",
    stdout: "ignore",
    stderr: fd,
    detached: true,
  });
  fs.closeSync(fd);
  child.unref();
  const deadline = performance.now() + start.withinMs;
  while (child.exitCode === null && child.signalCode === null) {
    if (await start.ready()) return { state: "ready", pid: child.pid };
    if (performance.now() > deadline) return { state: "late", pid: child.pid };
    await Bun.sleep(POLL_MS);
  }
  return {
    state: "ended",
    exitCode: child.exitCode,
    said: fs.readFileSync(start.stderrFile).subarray(before).toString("utf8").trim().slice(-1_000),
  };
}
