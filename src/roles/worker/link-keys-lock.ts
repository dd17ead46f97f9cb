import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { isErrno, makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import { lockWithin } from "../../lib/files/waited-lock.ts";

const WAIT_MS = 5_000;

/**
 * Change the keys of a worker's sessions while nobody else does: the worker, a command on its host, a bootstrap. Where the file system has no locks, the
 * later of two that write at once wins.
 *
 * @throws RelayError state_conflict where somebody else holds them for 5 s
 */
export async function withLinkKeys<T>(coreDir: string, change: () => T): Promise<T> {
  makePrivateDirectory(coreDir);
  const lock = await lockWithin(path.join(coreDir, "link-keys.lock"), WAIT_MS).catch((error: unknown) => {
    if (isErrno(error, "EAGAIN"))
      throw new RelayError("state_conflict", "another process is changing the worker's keys", {}, undefined, { cause: error });
    throw error;
  });
  try {
    return change();
  } finally {
    lock?.release();
  }
}
