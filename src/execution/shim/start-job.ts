import fs from "node:fs";
import path from "node:path";
import type { LogStream, StreamCapture } from "../../domain/log.ts";
import { isErrno, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { pipe } from "../../lib/system/libc.ts";
import { bootId, type Identity, processStat, self } from "../../lib/system/process-identity.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import {
  type AttemptSpec,
  FILES,
  logFile,
  type ProcessRecord,
  RECORD_VERSION,
  type TruncationRecord,
  truncatedFile,
} from "../spool-records.ts";
import { identifyWorkdir, type WorkdirIdentity } from "../workdir.ts";
import { commandLine, NotRunnable } from "./command-line.ts";
import { OutputBudget } from "./output-budget.ts";
import type { ReservedFile } from "./reserved-file.ts";
import type { ShimLog } from "./shim-log.ts";
import { StreamRecorder } from "./stream-recorder.ts";
import type { WaitingLog } from "./waiting-log.ts";

export interface StartOptions {
  /** The attempt's directory, by the name that the job sees. */
  readonly directory: string;
  /** A path of the same that the job cannot change; all that the shim writes goes there. */
  readonly place: string;
  readonly clock: Clock;
  readonly log: Pick<ShimLog, "note">;
  readonly patienceMs: number;
}

/** What the shim has made beforehand. */
export interface MadeBefore {
  readonly process: Pick<ReservedFile, "commit">;
  readonly logs?: Readonly<Record<LogStream, WaitingLog>>;
}

export interface StartedJob {
  readonly child: Bun.Subprocess;
  readonly recorders: Readonly<Record<LogStream, StreamRecorder>>;
  readonly logs: readonly number[];
  /** Read ends of the job's pipes. */
  readonly pipes: readonly number[];
  readonly startedAt: string;
}

/** Start the job's first process. Nothing of it runs when this throws. */
export function startJob(spec: AttemptSpec, options: StartOptions, made: MadeBefore): StartedJob {
  const { place, clock, log } = options;
  const workdir = enterable(spec.workdir);
  const line = commandLine(spec, writeEnvSetup(spec, options));
  const opened: number[] = [];
  let child: Bun.Subprocess;
  let logs: readonly [number, number];
  let pipes: readonly (readonly [read: number, write: number])[];
  try {
    logs = [openLog(place, "stdout", made, opened), openLog(place, "stderr", made, opened)];
    pipes = [openPipe(opened), openPipe(opened)];
    child = Bun.spawn([line.file, ...line.args], {
      argv0: line.argv0,
      cwd: spec.workdir,
      env: { ...spec.env },
      stdin: "ignore",
      stdout: pipes[0]![1],
      stderr: pipes[1]![1],
      // A session of its own: its pid names everything in it.
      detached: true,
    });
  } catch (error) {
    for (const fd of opened) fs.closeSync(fd);
    throw error;
  }
  for (const [, writeEnd] of pipes) fs.closeSync(writeEnd);
  const startedAt = timestamp(clock);
  // It may have ended already, but nobody has waited for it yet, so its entry is there.
  const identity: Identity = {
    pid: child.pid,
    start_time: processStat(child.pid)?.start_time ?? 0,
    boot_id: bootId(),
    hostname: self().hostname,
  };
  const record: ProcessRecord = { record_version: RECORD_VERSION, process: identity, started_at: startedAt, workdir };
  try {
    made.process.commit(place, JSON.stringify(record), false);
  } catch (error) {
    // Whoever needs the job's processes finds them by their environment.
    log.note(`process.json not written: ${String(error)}`);
  }

  const budget = new OutputBudget(spec.quota);
  const recorder = (stream: LogStream, index: 0 | 1): StreamRecorder =>
    new StreamRecorder({
      stream,
      pipe: pipes[index]![0],
      log: logs[index],
      budget,
      clock,
      patienceMs: options.patienceMs,
      onTruncated: (capture) => noteTruncation(stream, capture, options),
      onTrouble: (message) => log.note(message),
    });
  const recorders = { stdout: recorder("stdout", 0), stderr: recorder("stderr", 1) };
  return { child, recorders, logs, pipes: pipes.map(([readEnd]) => readEnd), startedAt };
}

function enterable(workdir: string): WorkdirIdentity {
  try {
    const identity = identifyWorkdir(workdir);
    fs.accessSync(workdir, fs.constants.X_OK);
    return identity;
  } catch (error) {
    const problem = isErrno(error, "ENOTDIR") ? "is not a directory" : isErrno(error, "ENOENT") ? "does not exist" : "cannot be entered";
    throw new Error(`the working directory ${problem}: ${workdir}`);
  }
}

/** Where the setup text lies, which is written there; null where there is none. */
export function writeEnvSetup(spec: AttemptSpec, { directory, place }: Pick<StartOptions, "directory" | "place">): string | null {
  if (spec.env_setup === null) return null;
  fs.writeFileSync(path.join(place, FILES.envSetup), `${spec.env_setup}\n`, { mode: 0o600 });
  return path.join(directory, FILES.envSetup);
}

/** @param opened gets what the caller has to close where it goes no further */
export function openLog(place: string, stream: LogStream, { logs }: Pick<MadeBefore, "logs">, opened: number[]): number {
  const target = path.join(place, logFile(stream));
  // Not for appending: a byte has its place, whatever somebody else does to the file.
  const fd = logs?.[stream].take(target) ?? fs.openSync(target, fs.constants.O_WRONLY | fs.constants.O_CREAT, 0o600);
  opened.push(fd);
  return fd;
}

function openPipe(opened: number[]): readonly [read: number, write: number] {
  const ends = pipe();
  opened.push(...ends);
  return ends;
}

export function noteTruncation(
  stream: LogStream,
  capture: StreamCapture,
  { place, clock, log }: Pick<StartOptions, "place" | "clock" | "log">,
): void {
  const record: TruncationRecord = { record_version: RECORD_VERSION, stream, capture, at: timestamp(clock) };
  const target = path.join(place, truncatedFile(stream));
  try {
    writeFileAtomic(target, JSON.stringify(record), { durable: false });
  } catch (error) {
    // exit.json says it, too.
    log.note(`${stream}: truncation record not written: ${String(error)}`);
  }
}

/** Why a job did not start, for people. */
export function reasonNotStarted(error: unknown): string {
  if (error instanceof NotRunnable) return `${error.message} (a shell would exit with ${error.shellCode})`;
  if (isErrno(error, "ENOEXEC"))
    return "the program has a format that the system cannot execute, or no #! line (a shell would exit with 126)";
  if (isErrno(error, "E2BIG")) return "the arguments and the environment are too large for the system (a shell would exit with 126)";
  if (isErrno(error, "EACCES")) return "the program, or its interpreter, cannot be executed (a shell would exit with 126)";
  if (isErrno(error, "ENOENT")) return "the program's interpreter is missing (a shell would exit with 127)";
  return error instanceof Error ? error.message : String(error);
}
