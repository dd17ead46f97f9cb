import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { ProcessIdentity } from "../domain/attempt.ts";
import { RelayError } from "../domain/errors.ts";
import { LOG_STREAMS, type LogStream } from "../domain/log.ts";
import { removeAbandoned } from "../lib/files/abandoned-files.ts";
import { createFileExclusive, isErrno, makePrivateDirectory, takeFreeName, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { isThere } from "../lib/files/file-system.ts";
import { HeldDirectory } from "../lib/files/held-directory.ts";
import { readRegular, regularSize } from "../lib/files/regular-file.ts";
import type { Identity } from "../lib/system/process-identity.ts";
import { clearPlace, holdAttempt, inAttempt } from "./own-place.ts";
import {
  ATTEMPT_MARK,
  type AttemptSpec,
  attemptMark,
  type CancelRecord,
  type ExitRecord,
  FILES,
  logFile,
  type ProcessRecord,
  RECORD_MAX_BYTES,
  RECORD_VERSION,
  type StartRecord,
  type TruncationRecord,
  truncatedFile,
} from "./spool-records.ts";
import { ExitSchema, ProcessSchema, SpecSchema, StartSchema, TruncationSchema } from "./spool-schemas.ts";

/** A job's directory below the cluster's spool. `jobId` must be a valid Id, so it can name a directory. */
export const jobDirectory = (clusterSpool: string, jobId: string): string => path.join(clusterSpool, jobId);

export const attemptDirectory = (jobDir: string, attempt: number): string => path.join(jobDir, `attempt-${attempt}`);

/** What prepareAttempt is given; it adds the version and the mark. */
export type AttemptPlan = Omit<AttemptSpec, "record_version"> & {
  /** Text of a script job, already part of argv by `scriptPath`. */
  readonly script?: string;
  /** Further files beside spec.json, by name. */
  readonly files?: Readonly<Record<string, string>>;
};

/** Where a script job's text will lie, for its argv. */
export const scriptPath = (attemptDir: string): string => path.join(attemptDir, FILES.script);

/** The directory that CLIO_RELAY_EVENTS names. */
export const eventsDirectory = (attemptDir: string): string => path.join(attemptDir, FILES.events);

/**
 * Make an attempt's directory ready for a shim: directories, script, and spec.json last, each whole. What lies there is removed
 * first: an interrupted try may have left it, or an earlier attempt of the job may have put it there.
 *
 * @throws RelayError storage_admission_refused when there is no room, job_submission_refused when the command is too long to be written down
 */
export function prepareAttempt(attemptDir: string, plan: AttemptPlan): AttemptSpec {
  const { script, files = {}, ...rest } = plan;
  const spec: AttemptSpec = {
    record_version: RECORD_VERSION,
    ...rest,
    env: { ...rest.env, [ATTEMPT_MARK]: attemptMark(rest.job_id, rest.attempt) },
  };
  const text = JSON.stringify(spec);
  const bytes = Buffer.byteLength(text);
  if (bytes > RECORD_MAX_BYTES) {
    throw new RelayError("job_submission_refused", `the command takes ${bytes} bytes to write down, more than ${RECORD_MAX_BYTES}`);
  }
  storing(attemptDir, () => {
    clearPlace(attemptDir);
    fs.rmSync(attemptDir, { recursive: true, force: true });
    fs.mkdirSync(eventsDirectory(attemptDir), { recursive: true, mode: 0o700 });
    if (script !== undefined) writeWhole(scriptPath(attemptDir), script);
    for (const [name, text] of Object.entries(files)) writeWhole(path.join(attemptDir, name), text);
    writeWhole(path.join(attemptDir, FILES.spec), text);
  });
  return spec;
}

/** Not flushed: whoever claims the attempt flushes the way to it, and without a claim nobody reads it. */
const writeWhole = (target: string, text: string): void => writeFileAtomic(target, text, { durable: false });

/** spec.json; null where it is missing or cannot be read. */
export const readSpec = (attemptDir: string): AttemptSpec | null => intact(readRecord(attemptDir, FILES.spec, SpecSchema));

/** What start.json says. `torn`: it exists and cannot be read, which counts as claimed by a shim that died. */
export function readStart(attemptDir: string): StartRecord | "torn" | null {
  return readRecord(attemptDir, FILES.start, StartSchema);
}

/** process.json, or null while the job has not started. An unreadable one counts as none: the mark finds the processes. */
export const readProcess = (attemptDir: string): ProcessRecord | null => intact(readRecord(attemptDir, FILES.process, ProcessSchema));

/** exit.json, or null while the attempt has not ended. `torn`: it exists and cannot be read. */
export function readExit(attemptDir: string): ExitRecord | "torn" | null {
  return readRecord(attemptDir, FILES.exit, ExitSchema);
}

/** Whether there is something in the place of exit.json. */
export const hasExit = (attemptDir: string): boolean => inAttempt(attemptDir, (place) => isThere(path.join(place, FILES.exit)), false);

export const readTruncation = (attemptDir: string, stream: LogStream): TruncationRecord | null =>
  intact(readRecord(attemptDir, truncatedFile(stream), TruncationSchema));

/**
 * Void an attempt that no shim has claimed. True: it never started and never will (also when it had been voided before).
 * False: a shim has claimed it.
 */
export function voidAttempt(attemptDir: string, reason: string): boolean {
  return storing(attemptDir, () => {
    clearPlace(attemptDir);
    makePrivateDirectory(attemptDir);
    const record: StartRecord = { record_version: RECORD_VERSION, claimed_by: "worker", reason };
    using place = holdAttempt(attemptDir);
    const won = createFileExclusive(path.join(place.path, FILES.start), JSON.stringify(record));
    const found = won ? record : readStart(attemptDir);
    if (found === null || found === "torn" || found.claimed_by !== "worker") return false;
    clearMaking(attemptDir);
    return true;
  });
}

/**
 * Write cancel.json. Once it is there, TERM to the shim is a cancel. Writing it again changes nothing. A job must be stoppable on a full
 * disk, too: there spec.json gets the name as its second, which takes no room, and that it is there is all that a shim looks at.
 */
export function writeCancel(attemptDir: string, requestedAt: string): void {
  const record: CancelRecord = { record_version: RECORD_VERSION, requested_at: requestedAt };
  using place = holdAttempt(attemptDir);
  const target = path.join(place.path, FILES.cancel);
  const text = JSON.stringify(record);
  try {
    createFileExclusive(target, text);
  } catch (error) {
    if (!isErrno(error, "ENOSPC", "EDQUOT") || fs.existsSync(target)) throw error;
    storing(attemptDir, () => takeFreeName(path.join(place.path, FILES.spec), target));
  }
}

/**
 * Remove what workers that were killed had in the making in an attempt that has ended. Never fails: what stays is some hundred bytes.
 */
export function clearMaking(attemptDir: string): void {
  try {
    inAttempt(attemptDir, removeAbandoned, undefined);
  } catch {
    // The directory is not to be written to any more.
  }
}

/** Write exit.json in place of a shim that was killed. False when there is one already, which then holds. */
export function writeExit(attemptDir: string, record: ExitRecord): boolean {
  using place = holdAttempt(attemptDir);
  const written = storing(attemptDir, () => createFileExclusive(path.join(place.path, FILES.exit), JSON.stringify(record)));
  // The room that the shim had taken for its records.
  for (const name of fs.readdirSync(place.path)) {
    if (/^\.(start\.json|exit\.json|process\.json|stdout\.log|stderr\.log)\..*\.tmp$/.test(name))
      fs.rmSync(path.join(place.path, name), { force: true });
  }
  return written;
}

/** Give the owner back the permissions that a job may have taken from its attempt's directories and files. Never fails. */
export function openAttempt(attemptDir: string): void {
  const jobDir = path.dirname(attemptDir);
  // From above downwards: one that cannot be entered hides those below it. What a link leads to is not reached.
  openToOwner(jobDir);
  const opened = (name: string, work: (place: string) => void): void => {
    try {
      using job = new HeldDirectory(path.dirname(jobDir), path.basename(jobDir));
      openToOwner(path.join(job.path, name));
      using below = new HeldDirectory(job.path, name);
      work(below.path);
    } catch {
      // It is not there, or no directory.
    }
  };
  opened("artifacts", () => undefined);
  const names = [...Object.values(FILES), ...LOG_STREAMS.flatMap((stream) => [logFile(stream), truncatedFile(stream)])];
  opened(path.basename(attemptDir), (place) => {
    for (const name of names) openToOwner(path.join(place, name));
  });
}

function openToOwner(file: string): void {
  try {
    const stat = fs.lstatSync(file);
    // Not through a link, which would change what it leads to.
    if (stat.isDirectory()) fs.chmodSync(file, 0o700);
    else if (stat.isFile()) fs.chmodSync(file, 0o600);
  } catch {
    // It is not there, or not ours.
  }
}

/** Sizes of the attempt's log files in bytes, 0 where there is none. */
export function logSizes(attemptDir: string): Record<LogStream, number> {
  const size = (stream: LogStream): number => {
    const found = inAttempt(attemptDir, (place) => regularSize(path.join(place, logFile(stream))), "absent");
    return typeof found === "number" ? found : 0;
  };
  return Object.fromEntries(LOG_STREAMS.map((stream) => [stream, size(stream)])) as Record<LogStream, number>;
}

/**
 * Null where there is none, `torn` for what is no record. A shim and a worker of one version make all records of an attempt: one that is of a later
 * version than its start.json is no record of theirs.
 *
 * @throws RelayError version_mismatch for a record of a later version
 */
function readRecord<T>(attemptDir: string, name: string, schema: v.GenericSchema<unknown, T>): T | "torn" | null {
  const value = readJson(attemptDir, name);
  if (value === null || value === "torn") return value;
  if (isLater(value.json)) {
    const start = name === FILES.start ? value : readJson(attemptDir, FILES.start);
    if (start !== null && start !== "torn" && isLater(start.json)) throw laterVersion(value.json, attemptDir, name);
    return "torn";
  }
  const parsed = v.safeParse(schema, value.json);
  return parsed.success ? parsed.output : "torn";
}

function readJson(attemptDir: string, name: string): { readonly json: unknown } | "torn" | null {
  const found = inAttempt(attemptDir, (place) => readRegular(path.join(place, name), RECORD_MAX_BYTES), "absent");
  if (found === "absent") return null;
  if (typeof found === "string") return "torn";
  try {
    return { json: JSON.parse(found.text) };
  } catch {
    return "torn";
  }
}

const versionOf = (value: unknown): unknown =>
  value !== null && typeof value === "object" && "record_version" in value ? value.record_version : null;

/** What a later version means by its members is not known here, even where they look familiar. */
function isLater(value: unknown): boolean {
  const version = versionOf(value);
  return typeof version === "number" && version > RECORD_VERSION;
}

const laterVersion = (value: unknown, attemptDir: string, name: string): RelayError =>
  new RelayError(
    "version_mismatch",
    `${name} of ${path.basename(path.dirname(attemptDir))}, ${path.basename(attemptDir)}, has record version ${versionOf(value)}; this worker reads up to ${RECORD_VERSION}`,
    { file: name, record_version: versionOf(value), supported: RECORD_VERSION },
    "run the worker with the version of clio-relay that started the job, or a later one",
  );

/** Whom a start.json of a later version seems to name as its shim: as good as any other guess, and no reason to end anybody. */
export function shimOfLater(attemptDir: string): Identity | null {
  const start = readJson(attemptDir, FILES.start);
  const json = start === null || start === "torn" ? null : start.json;
  const shim = json !== null && typeof json === "object" && "shim" in json ? json.shim : null;
  const parsed = v.safeParse(ProcessIdentity, shim);
  return parsed.success ? parsed.output : null;
}

/** Whether an attempt has left something that only a started one leaves: a start.json that is missing has then been removed. */
export function hasTraces(attemptDir: string): boolean {
  const names = [FILES.process, FILES.exit, ...LOG_STREAMS.map(logFile)];
  return inAttempt(attemptDir, (place) => names.some((name) => isThere(path.join(place, name))), false);
}

const intact = <T>(record: T | "torn" | null): T | null => (record === "torn" ? null : record);

function storing<T>(subject: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (isErrno(error, "ENOSPC", "EDQUOT")) {
      throw new RelayError("storage_admission_refused", `no room left to write in ${subject}`, { path: subject }, undefined, {
        cause: error,
      });
    }
    throw error;
  }
}
