import type { QueueStore } from "../store.ts";
import { CommitMark } from "./commit-mark.ts";
import { openDatabase } from "./database-file.ts";
import { relayFailure } from "./sqlite-failure.ts";
import { type QueueOptions, sqliteQueue } from "./sqlite-queue.ts";

/**
 * Open the queue that lies in a directory, making it where there is none. Synchronous. Whoever calls it owns the directory (../ownership.ts).
 *
 * @throws RelayError queue_foreign, queue_newer or queue_corrupt, with the file left as it was; queue_unavailable when another process holds it
 * or the file system cannot carry it; storage_admission_refused when the disk is full
 */
export function openQueue(directory: string, options: QueueOptions): QueueStore {
  const { database, file } = openDatabase(directory);
  try {
    return sqliteQueue(database, file, options, (opened) => new CommitMark(opened, file));
  } catch (error) {
    database.close();
    throw relayFailure(error, file);
  }
}
