import fs from "node:fs";
import type { LogStream } from "../../domain/log.ts";
import { PreparedFile } from "../../lib/files/atomic-file.ts";
import { self } from "../../lib/system/process-identity.ts";
import { exclusiveCgroup } from "../cgroup.ts";
import { type Allocation, FILES, logFile, RECORD_VERSION, type StartRecord } from "../spool-records.ts";
import { ReservedFile } from "./reserved-file.ts";
import { WaitingLog } from "./waiting-log.ts";

/** Room for the longest exit record: a thousand residual pids and a message. */
const EXIT_BYTES = 16 * 1024;
/** The record of the first process, with a path. */
const PROCESS_BYTES = 8 * 1024;

/** The files that a shim has to have before it starts anything. A spare makes them while it waits, in the spool. */
export interface Provision {
  readonly directory: string;
  readonly claim: PreparedFile;
  readonly exit: ReservedFile;
  readonly process: ReservedFile;
  readonly logs: Readonly<Record<LogStream, WaitingLog>>;
  /** What /proc/self/cgroup said when the claim was written. */
  readonly cgroup: string;
}

/** The claim of this process: the same for every attempt, as long as it stays in its cgroup. */
export function claimText(version: string, allocation?: Allocation): string {
  const record: StartRecord = {
    record_version: RECORD_VERSION,
    claimed_by: "shim",
    shim: self(),
    cgroup: exclusiveCgroup(),
    version,
    allocation,
  };
  return JSON.stringify(record);
}

/** Whether the claim still says where this process is: a spare may have been moved to its cgroup after it had written it. */
export const holds = (provision: Provision): boolean => provision.cgroup === ownPlace();

function ownPlace(): string {
  try {
    return fs.readFileSync("/proc/self/cgroup", "latin1");
  } catch {
    return "";
  }
}

/**
 * Make them in a directory: all of them, or none when that throws.
 *
 * @param flushed whether the claim is flushed at once, or only when it is published
 */
export function provide(directory: string, version: string, flushed: boolean, allocation?: Allocation): Provision {
  const made: { abandon(): void }[] = [];
  try {
    const exit = new ReservedFile(directory, FILES.exit, EXIT_BYTES);
    made.push(exit);
    const process = new ReservedFile(directory, FILES.process, PROCESS_BYTES);
    made.push(process);
    const log = (stream: LogStream): WaitingLog => {
      const waiting = new WaitingLog(directory, logFile(stream));
      made.push(waiting);
      return waiting;
    };
    const logs = { stdout: log("stdout"), stderr: log("stderr") };
    const cgroup = ownPlace();
    const claim = new PreparedFile(directory, FILES.start, claimText(version, allocation), flushed);
    return { directory, claim, exit, process, logs, cgroup };
  } catch (error) {
    for (const file of made) file.abandon();
    throw error;
  }
}

/** The same with a claim that says where this process is by now. */
export function renewed(provision: Provision, version: string): Provision {
  const cgroup = ownPlace();
  const claim = new PreparedFile(provision.directory, FILES.start, claimText(version));
  provision.claim.discard();
  return { ...provision, claim, cgroup };
}

export function abandon({ claim, exit, process, logs }: Provision): void {
  claim.discard();
  for (const file of [exit, process, logs.stdout, logs.stderr]) file.abandon();
}

/** What was made elsewhere can be used when it can be linked: on one file system. */
export const isUsable = (provision: Provision, directory: string): boolean =>
  provision.directory === directory || fs.statSync(provision.directory).dev === fs.statSync(directory).dev;
