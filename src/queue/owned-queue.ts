import fs from "node:fs";
import path from "node:path";
import { isRelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import { goOnWithoutLog, refuseIncomplete } from "./completeness.ts";
import { acquireOwnership, type Ownership, type OwnershipOptions } from "./ownership.ts";
import { refuseOtherKinds } from "./queue-files.ts";
import { MARK_FILE } from "./sqlite/commit-mark.ts";
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
  /** Go on without what a write-ahead log lacks, and make a damaged file anew. Otherwise both are refused. */
  readonly repair: boolean;
}

/** Whether a directory holds a queue, or what is left of one: its database, that one's log or backups, or the record of an owner or a commit. */
export function hasQueue(directory: string): boolean {
  try {
    return fs.readdirSync(directory).some((name) => name === "owner.json" || name === MARK_FILE || name.startsWith(QUEUE_FILE));
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/**
 * Own the queue in a directory and open it. A write-ahead log that is gone, or does not hold all that was committed, is refused: a job that has run may
 * look as if it waited.
 *
 * @throws RelayError queue_owned; queue_incomplete when a file is gone or cut short that the owner before had; queue_unavailable when something else
 * than a file has a file's name; queue_* as openQueue
 */
export function openOwnedQueue(directory: string, { ownership, queue, repair }: OwnedQueueOptions): OwnedQueue {
  const owned = acquireOwnership(directory, ownership);
  try {
    refuseOtherKinds(path.join(directory, QUEUE_FILE));
    const repaired = repair ? goOnWithoutLog(directory, owned.before) : [];
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
