import type { Outcome } from "../domain/job.ts";
import type { LogStream, StreamCapture } from "../domain/log.ts";
import type { SchedulerName } from "../domain/scheduler.ts";
import type { Identity } from "../lib/system/process-identity.ts";
import type { WorkdirIdentity } from "./workdir.ts";

/** Version of every record in an attempt's directory. A shim writes what it knows; a newer worker still reads it. */
export const RECORD_VERSION = 1;

/** No record of the spool is larger. */
export const RECORD_MAX_BYTES = 1024 * 1024;

/** Names of what lies in an attempt's directory; docs/spool.md has their meaning. */
export const FILES = {
  spec: "spec.json",
  script: "script",
  envSetup: "env-setup",
  envSetupFailed: "env-setup.failed",
  start: "start.json",
  process: "process.json",
  events: "events",
  cancel: "cancel.json",
  batch: "batch.sh",
  refusal: "refusal",
  schedulerLog: "scheduler.log",
  exit: "exit.json",
  shimLog: "shim.log",
} as const;

export const logFile = (stream: LogStream): string => `${stream}.log`;
export const truncatedFile = (stream: LogStream): string => `truncated-${stream}.json`;

/** The variable that every process of a job carries, and the value that names the attempt. */
export const ATTEMPT_MARK = "CLIO_RELAY_ATTEMPT";
export const attemptMark = (jobId: string, attempt: number): string => `${jobId}/${attempt}`;

/** How much of a job's output may be kept, in bytes, and what earlier attempts have kept of it. */
export interface OutputQuota {
  readonly stream_bytes: number;
  readonly job_bytes: number;
  readonly used: Readonly<Record<LogStream, number>>;
}

/** spec.json: what the shim runs. */
export interface AttemptSpec {
  readonly record_version: number;
  readonly job_id: string;
  readonly attempt: number;
  readonly cluster: string;
  /** Program and arguments; not empty. */
  readonly argv: readonly string[];
  readonly workdir: string;
  /** The complete environment, the mark included. */
  readonly env: Readonly<Record<string, string>>;
  /** Run through the login shell that env.SHELL names. */
  readonly login: boolean;
  /** Shell text that is sourced before the program. */
  readonly env_setup: string | null;
  /** The first command of it that fails ends the attempt, as does its exit. Absent: it may fail. */
  readonly env_setup_strict?: boolean;
  readonly timeout_seconds: number | null;
  readonly quota: OutputQuota;
  readonly cancel_grace_seconds: number;
  /** For so long a cancel, a signal or the time limit is the first process's alone, so that it can take leave of what it started. Absent: it is everybody's at once. */
  readonly first_alone_seconds?: number;
}

/** start.json: who got to decide whether the attempt starts. */
export type StartRecord =
  | {
      readonly record_version: number;
      readonly claimed_by: "shim";
      readonly shim: Identity;
      /** Path of a cgroup v2 directory that holds nothing but the shim and the job; null where there is none. */
      readonly cgroup: string | null;
      readonly version: string;
      /** Where the shim runs in an allocation: then its pid and its boot say nothing on any other host. */
      readonly allocation?: Allocation | undefined;
    }
  | { readonly record_version: number; readonly claimed_by: "worker"; readonly reason: string };

/** EX_CONFIG of sysexits.h: the exit code of a batch script, or of a shim in its place, that has found out that it cannot run the attempt. */
export const CANNOT_RUN = 78;

/** An allocation of a scheduler, as its batch script learns of it. */
export interface Allocation {
  readonly provider: SchedulerName;
  /** The scheduler's own name for the job. */
  readonly native_id: string;
  /** The name of the scheduler's cluster, where it has one. */
  readonly cluster: string | null;
  /** Host of the shim. */
  readonly node: string;
}

/** process.json: the job's first process. It leads a session of its own, so its pid is also the session's id. */
export interface ProcessRecord {
  readonly record_version: number;
  readonly process: Identity;
  readonly started_at: string;
  /** Which directory the job was started in; absent where an older shim did not say. */
  readonly workdir?: WorkdirIdentity | undefined;
}

/** Accounting of one stream, with the digest of what the log file holds. */
export interface ExitStream extends StreamCapture {
  /** Of the kept bytes; null when nobody could compute it (the shim was killed). */
  readonly sha256: string | null;
}

export interface Usage {
  readonly user_seconds: number;
  readonly system_seconds: number;
  /** Largest resident set of any one process. Never below that of the shim at the moment it started the job (getrusage(2)). */
  readonly max_rss_bytes: number;
}

/** exit.json: the attempt has ended and nothing of it runs any more, `outcome.residual` excepted. */
export interface ExitRecord {
  readonly record_version: number;
  readonly outcome: Outcome;
  /** When the job's first process started; null when it never did, or nobody knows. */
  readonly started_at: string | null;
  readonly ended_at: string;
  readonly streams: Readonly<Record<LogStream, ExitStream>>;
  /** Of the first process and the children that it waited for; null when it never started, or the shim was killed. */
  readonly usage: Usage | null;
  /** How many processes had to be ended after the first one. */
  readonly leftover: number;
  /** In an allocation: its end was asked for, by no cancel of ours, before this was written. Whether that is why it ended, its scheduler says. */
  readonly asked_to_end?: boolean | undefined;
  /** How many processes the kernel has ended because memory ran out; absent for none, and where that cannot be seen. */
  readonly memory_kills?: number | undefined;
}

/** truncated-<stream>.json: the accounting at the moment when the first byte was dropped. */
export interface TruncationRecord {
  readonly record_version: number;
  readonly stream: LogStream;
  readonly capture: StreamCapture;
  readonly at: string;
}

/** cancel.json: TERM to the shim means cancel. */
export interface CancelRecord {
  readonly record_version: number;
  readonly requested_at: string;
}
