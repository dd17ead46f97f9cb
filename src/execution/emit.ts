import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { LIMITS } from "../domain/limits.ts";
import { NewProgress, type NewProgressInput } from "../domain/progress.ts";
import { NewTaskEvent, type NewTaskEventInput } from "../domain/task.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import { processStat } from "../lib/system/process-identity.ts";

/** What a process of a job reports. */
export type Emission = ({ readonly type: "progress" } & NewProgressInput) | ({ readonly type: "task-event" } & NewTaskEventInput);

/**
 * Append one line to this session's file in the directory that CLIO_RELAY_EVENTS names.
 *
 * One file a session and host, named after the session's leader: a script that reports a thousand times makes one file, and
 * appends of one host to one file do not mix, while those of two hosts would on NFS (open(2), O_APPEND).
 *
 * @throws RelayError request_validation_failed, not_found when the directory is not there, storage_admission_refused when there is no room
 */
export function emit(eventsDir: string, emission: Emission): void {
  const { type, ...members } = emission;
  const parsed = v.safeParse<v.GenericSchema>(type === "progress" ? NewProgress : NewTaskEvent, members);
  if (!parsed.success) {
    const issues = parsed.issues.slice(0, 20).map((issue) => ({ path: v.getDotPath(issue) ?? "", message: issue.message }));
    const [first] = issues;
    throw new RelayError("request_validation_failed", `${first?.path || type}: ${first?.message}`, { issues });
  }
  const line = Buffer.from(`${JSON.stringify({ type, ...members })}\n`);
  if (line.length > LIMITS.emitLineBytes) {
    throw new RelayError("request_validation_failed", `the report takes ${line.length} bytes, more than ${LIMITS.emitLineBytes}`);
  }
  append(path.join(eventsDir, emitFileName()), line);
}

/** `<hostname>-<session>-<start time of its leader, 0 when it has ended>.jsonl` */
export function emitFileName(hostname = os.hostname(), pid = process.pid): string {
  const session = processStat(pid)?.session ?? pid;
  const start = processStat(session)?.start_time ?? 0;
  const host =
    hostname
      .replaceAll(/[^A-Za-z0-9.-]/g, "-")
      .replace(/^[.-]+/, "")
      .slice(0, 128) || "host";
  return `${host}-${session}-${start}.jsonl`;
}

function append(file: string, line: Uint8Array): void {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) {
      throw new RelayError("not_found", `no such directory: ${path.dirname(file)}`, {}, "reports are taken from inside a running job only");
    }
    throw asNoRoom(error);
  }
  try {
    // One write, so that no other process's line comes in between.
    const bytes = endsWithNewline(fd) ? line : Buffer.concat([Buffer.from("\n"), line]);
    if (fs.writeSync(fd, bytes) < bytes.length) throw noRoom(undefined);
  } catch (error) {
    throw asNoRoom(error);
  } finally {
    fs.closeSync(fd);
  }
}

/** False after a line that a full disk cut short: the next one must not become part of it. */
function endsWithNewline(fd: number): boolean {
  const { size } = fs.fstatSync(fd);
  const last = Buffer.alloc(1);
  return size === 0 || fs.readSync(fd, last, 0, 1, size - 1) === 0 || last[0] === 10;
}

const noRoom = (cause: unknown): RelayError =>
  new RelayError("storage_admission_refused", "no room left for the report", {}, undefined, { cause });

const asNoRoom = (error: unknown): unknown => (isErrno(error, "ENOSPC", "EDQUOT") ? noRoom(error) : error);
