import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import type { Owner } from "./ownership.ts";
import { nameForDamaged, whatIs } from "./queue-files.ts";
import { lackOf, MARK_FILE, readMark } from "./sqlite/commit-mark.ts";
import { QUEUE_FILE } from "./sqlite/database-file.ts";
import type { Finding } from "./store.ts";

/** What is gone of a queue, or cut short. */
interface Lack {
  readonly file: string;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * A queue that was used before has its file; one that was killed has all of the log that its mark tells of. The owner's record says that there
 * has to be a mark.
 *
 * @param before the owner before, when it did not let go
 */
function lackIn(directory: string, before: Owner | null): Lack | null {
  const file = path.join(directory, QUEUE_FILE);
  const mark = readMark(directory);
  const ended =
    before?.database_open === true
      ? `process ${before.pid} on ${before.hostname}, which had it open since ${before.since}, did not end by itself`
      : "this queue has been used before";
  const data =
    before?.database_open === true ? { directory, pid: before.pid, hostname: before.hostname, since: before.since } : { directory };
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) {
    if (mark === "absent" && before?.database_open !== true) return null;
    return { file, message: `${file} is gone, although ${ended}`, data: { ...data, missing: QUEUE_FILE } };
  }
  const from = stat.mtime.toISOString();
  const lost = `what was committed after ${from} may be missing, and a job that has run since may look as if it waited`;
  if (mark === "unreadable" || (mark === "absent" && before?.database_open === true)) {
    const name = path.join(directory, MARK_FILE);
    return {
      file: name,
      message: `${name} ${mark === "absent" ? "is gone" : "cannot be read"}, so it is not known how far the queue's log has to reach: ${lost}`,
      data: { ...data, missing: MARK_FILE, complete_until: from },
    };
  }
  const log = `${file}-wal`;
  const lack = lackOf(log, mark === "absent" ? null : mark);
  if (lack === null) return null;
  return {
    file: log,
    message: `${log} ${lack}, although ${ended}: ${lost}`,
    data: { ...data, missing: path.basename(log), complete_until: from },
  };
}

/** @throws RelayError queue_incomplete */
export function refuseIncomplete(directory: string, before: Owner | null): void {
  const lack = lackIn(directory, before);
  if (lack !== null) throw new RelayError("queue_incomplete", lack.message, lack.data);
}

/**
 * Go on with what is there: the log can be done without, or without its end, if somebody says so. What is left of it is kept under another name.
 *
 * @throws RelayError queue_incomplete when the database itself is gone
 */
export function goOnWithoutLog(directory: string, before: Owner | null): Finding[] {
  const lack = lackIn(directory, before);
  if (lack === null) return [];
  if (lack.data["missing"] === QUEUE_FILE) {
    throw new RelayError(
      "queue_incomplete",
      lack.message,
      lack.data,
      `put it back, or a backup of it; a new queue begins when owner.json and ${MARK_FILE} are removed`,
    );
  }
  const kept = keep(lack.file);
  const detail = `${lack.message}; the queue goes on without it${kept === null ? "" : `, and what was there is kept as ${kept}`}`;
  return [{ check: "file", subject: path.basename(lack.file), detail, repairable: true }];
}

/** A log is copied, because SQLite takes what can be read of it from the file itself; anything else is in the way. */
function keep(file: string): string | null {
  const there = whatIs(file);
  if (there === null) return null;
  const kept = nameForDamaged(file);
  if (there === "file") fs.copyFileSync(file, kept, fs.constants.COPYFILE_EXCL);
  else fs.renameSync(file, kept);
  return kept;
}
