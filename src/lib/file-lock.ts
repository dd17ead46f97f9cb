import fs from "node:fs";
import { tryFlock } from "./libc.ts";

/** A held lock. The kernel releases it when the process dies, however it dies. */
export interface FileLock {
  release(): void;
}

/**
 * Lock a file exclusively, without waiting; null when another process holds it. The file is made where it is missing and
 * stays: removing it would let two processes lock two files of one name.
 */
export function tryLock(file: string): FileLock | null {
  const fd = fs.openSync(file, fs.constants.O_CREAT | fs.constants.O_RDWR, 0o600);
  if (!tryFlock(fd)) {
    fs.closeSync(fd);
    return null;
  }
  let held = true;
  return {
    release() {
      if (held) fs.closeSync(fd);
      held = false;
    },
  };
}
