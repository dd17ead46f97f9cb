import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../lib/files/atomic-file.ts";
import { type Identity, isAlive } from "../lib/system/process-identity.ts";
import { initialVariable } from "./process-table.ts";
import { findJob } from "./processes.ts";
import { attemptMark, FILES } from "./spool-records.ts";

/** An attempt as this worker knows it. */
export interface KnownAttempt {
  readonly job_id: string;
  readonly attempt: number;
  /** The cluster's spool of this worker. */
  readonly spool: string;
  /** Its shim, where that is known. */
  readonly shim: Identity | null;
}

/**
 * The attempt's directory in another spool, where what runs of it is at home; null where nothing runs, or it is at home in this one. A queue and a spool that
 * were copied while their jobs ran name processes that are the original's: the copy may neither wait for them nor end them. A spool that was moved
 * is still the same directory, and a job that moves its own was started in this one.
 */
export function homeElsewhere({ job_id, attempt, spool, shim }: KnownAttempt): string | null {
  const suffix = path.join("/", job_id, `attempt-${attempt}`);
  let home: string | null = null;
  if (shim !== null) {
    if (!isAlive(shim)) return null;
    home = heldBy(shim.pid, suffix);
    if (home === null || isIn(home, spool)) return null;
  }
  const mark = attemptMark(job_id, attempt);
  const events = findJob({ mark, process: null, cgroup: null }).owned.map(({ pid }) => initialVariable(pid, "CLIO_RELAY_EVENTS"));
  const started = events.filter((each) => each !== null).map((each) => path.dirname(each));
  if (started.some((directory) => directory.startsWith(`${spool}/`) || isIn(directory, spool))) return null;
  return home ?? started.find((directory) => fs.existsSync(path.join(directory, FILES.start))) ?? null;
}

/** The attempt's directory that a shim holds open, by the name that it has now (proc_pid_fd(5)). */
function heldBy(pid: number, suffix: string): string | null {
  try {
    for (const fd of fs.readdirSync(`/proc/${pid}/fd`)) {
      const target = linkOf(`/proc/${pid}/fd/${fd}`);
      if (target?.endsWith(suffix)) return target;
    }
  } catch (error) {
    if (!isErrno(error, "ENOENT", "ESRCH", "EACCES", "EPERM")) throw error;
  }
  return null;
}

function linkOf(file: string): string | null {
  try {
    return fs.readlinkSync(file);
  } catch {
    return null;
  }
}

/** Whether an attempt's directory lies in a spool, whatever names lead to that. */
function isIn(attemptDir: string, spool: string): boolean {
  const [there, here] = [path.dirname(path.dirname(attemptDir)), spool].map((directory) =>
    fs.statSync(directory, { throwIfNoEntry: false, bigint: true }),
  );
  return there !== undefined && here !== undefined && there.dev === here.dev && there.ino === here.ino;
}
