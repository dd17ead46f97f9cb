import { isErrno } from "./atomic-file.ts";
import { type FileLock, tryLock } from "./file-lock.ts";

/**
 * Lock a file exclusively, waiting for its holder. Null on file systems without locks.
 *
 * @throws the system's error, with its `code`: EAGAIN where somebody holds it for all that time
 */
export async function lockWithin(file: string, ms: number): Promise<FileLock | null> {
  const deadline = performance.now() + ms;
  for (;;) {
    try {
      const lock = tryLock(file);
      if (lock !== null) return lock;
    } catch (error) {
      if (isErrno(error, "ENOLCK", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) return null;
      throw error;
    }
    if (performance.now() > deadline) throw Object.assign(new Error(`${file} stays locked by another process`), { code: "EAGAIN" });
    await Bun.sleep(20);
  }
}
