import fs from "node:fs";
import path from "node:path";
import { isRelayError, RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/atomic-file.ts";
import { acquireOwnership, type Owner, type Ownership, type OwnershipOptions } from "./ownership.ts";
import { QUEUE_FILE } from "./sqlite/database-file.ts";
import { makeAnew } from "./sqlite/make-anew.ts";
import { openQueue } from "./sqlite/open.ts";
import type { QueueOptions } from "./sqlite/sqlite-queue.ts";
import type { Finding, QueueStore } from "./store.ts";

export interface OwnedQueue {
  readonly store: QueueStore;
  /** What was put right of the files before they were opened. */
  readonly repaired: readonly Finding[];
  /** Closes the store and lets go of the queue. */
  close(): Promise<void>;
}

export interface OwnedQueueOptions {
  readonly ownership: OwnershipOptions;
  readonly queue: QueueOptions;
  /** Go on without a write-ahead log that is gone, and make a damaged file anew. Otherwise both are refused. */
  readonly repair: boolean;
}

/** Whether a directory holds a queue, or what is left of one: its database, that one's log or backups, or the record of an owner. */
export function hasQueue(directory: string): boolean {
  try {
    return fs.readdirSync(directory).some((name) => name === "owner.json" || name.startsWith(QUEUE_FILE));
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/**
 * Own the queue in a directory and open it. A write-ahead log that is gone is refused: what was committed since the last checkpoint has gone with it,
 * and a job that has run may look as if it waited.
 *
 * @throws RelayError queue_owned; queue_incomplete when a file is gone that the owner before had when it was killed; queue_* as openQueue
 */
export function openOwnedQueue(directory: string, { ownership, queue, repair }: OwnedQueueOptions): OwnedQueue {
  const owned = acquireOwnership(directory, ownership);
  try {
    const repaired = repair ? goOnWithoutLog(directory, owned) : [];
    if (!repair) refuseIncomplete(directory, owned.before);
    const store = open(directory, queue, repair, owned, repaired);
    try {
      owned.setDatabaseOpen(true);
    } catch (error) {
      void store.close();
      throw error;
    }
    return { store, repaired, close: () => close(store, owned) };
  } catch (error) {
    owned.giveBack();
    throw error;
  }
}

async function close(store: QueueStore, owned: Ownership): Promise<void> {
  try {
    // First, because the log is gone as soon as the file is closed.
    owned.setDatabaseOpen(false);
  } catch {
    // On a full disk. The record is removed in a moment; only a kill before that leaves one that is wrong.
  }
  try {
    await store.close();
  } finally {
    owned.release();
  }
}

function open(directory: string, queue: QueueOptions, repair: boolean, owned: Ownership, repaired: Finding[]): QueueStore {
  try {
    return openQueue(directory, queue);
  } catch (error) {
    if (!repair || !isRelayError(error, "queue_corrupt")) throw error;
    owned.setDatabaseOpen(true);
    const kept = makeAnew(path.join(directory, QUEUE_FILE));
    repaired.push({
      check: "file",
      subject: QUEUE_FILE,
      detail: `${error.message}; it was made anew from its tables, and the damaged one is kept as ${kept}`,
      repairable: true,
    });
    return openQueue(directory, queue);
  }
}

interface Missing {
  readonly file: string;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** What is gone of the files that the owner before had open when it was killed. */
function missing(directory: string, before: Owner | null): Missing | null {
  if (before === null || !before.database_open) return null;
  const file = path.join(directory, QUEUE_FILE);
  const owner = `process ${before.pid} on ${before.hostname}, which had it open since ${before.since}, did not end by itself`;
  const data = { directory, pid: before.pid, hostname: before.hostname, since: before.since };
  const stat = fs.statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return { file, message: `${file} is gone, although ${owner}`, data: { ...data, missing: QUEUE_FILE } };
  const log = `${file}-wal`;
  if (fs.existsSync(log) || !keepsLog(file)) return null;
  const from = stat.mtime.toISOString();
  return {
    file: log,
    message: `${log} is gone, although ${owner}: what was committed after ${from} may be missing, and a job that has run since may look as if it waited`,
    data: { ...data, missing: path.basename(log), complete_until: from },
  };
}

/** Whether a database has a write-ahead log while it is open (sqlite.org/fileformat2.html, 1.3.3: bytes 18 and 19). */
function keepsLog(file: string): boolean {
  const fd = fs.openSync(file, "r");
  try {
    const versions = Buffer.alloc(2);
    return fs.readSync(fd, versions, 0, 2, 18) === 2 && versions[0] === 2 && versions[1] === 2;
  } finally {
    fs.closeSync(fd);
  }
}

function refuseIncomplete(directory: string, before: Owner | null): void {
  const gone = missing(directory, before);
  if (gone !== null) throw new RelayError("queue_incomplete", gone.message, gone.data);
}

/** The log can be done without, if somebody says so; the file cannot. */
function goOnWithoutLog(directory: string, { before }: Ownership): Finding[] {
  const gone = missing(directory, before);
  if (gone === null) return [];
  if (gone.data["missing"] === QUEUE_FILE) {
    throw new RelayError(
      "queue_incomplete",
      gone.message,
      gone.data,
      "put it back, or a backup of it; a new queue begins when owner.json is removed",
    );
  }
  return [{ check: "file", subject: path.basename(gone.file), detail: `${gone.message}; the queue goes on without it`, repairable: true }];
}
