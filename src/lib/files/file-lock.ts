import fs from "node:fs";
import os from "node:os";
import { flock } from "../system/libc.ts";
import { closeHandle, openLocked, WIN_ERROR } from "../system/windows.ts";

/** A held lock. The kernel releases it when the process dies, however it dies. */
export interface FileLock {
  release(): void;
}

/** A failure that is not another holder counts when it is there each time: a signal, or the runtime between call and look, leave others. */
const TRIES = 5;
const { EAGAIN } = os.constants.errno;

/**
 * Lock a file exclusively, without waiting; null when another process holds it. The file is made where it is missing and
 * stays: removing it would let two processes lock two files of one name.
 *
 * @throws the system's error, with its `code`, when the file cannot be opened or locked: ENOLCK, or ENOTSUP, on a file system without locks
 */
export function tryLock(file: string, lock: (fd: number) => number = flock): FileLock | null {
  const fd = fs.openSync(file, fs.constants.O_CREAT | fs.constants.O_RDWR, 0o600);
  if (process.platform === "win32") {
    fs.closeSync(fd);
    return tryLockOnWindows(file);
  }
  let errno = 0;
  try {
    for (let left = TRIES; left > 0; left--) {
      errno = lock(fd);
      if (errno === 0) return heldUntil(() => fs.closeSync(fd));
      if (errno === EAGAIN) break;
    }
  } catch (error) {
    fs.closeSync(fd);
    throw error;
  }
  fs.closeSync(fd);
  if (errno === EAGAIN) return null;
  throw systemError(errno, file);
}

function tryLockOnWindows(file: string): FileLock | null {
  let error = 0;
  for (let left = TRIES; left > 0; left--) {
    const opened = openLocked(file);
    if ("handle" in opened) return heldUntil(() => closeHandle(opened.handle));
    error = opened.error;
    if (error === WIN_ERROR.lockViolation || error === WIN_ERROR.ioPending || error === WIN_ERROR.sharingViolation) return null;
  }
  // Of a file that could be opened a moment ago: its file system has no locks.
  const code = error === WIN_ERROR.accessDenied ? "EACCES" : "ENOTSUP";
  throw Object.assign(new Error(`${code}: LockFileEx '${file}', Windows error ${error}`), { code, syscall: "LockFileEx", path: file });
}

function heldUntil(close: () => void): FileLock {
  let held = true;
  return {
    release() {
      if (held) close();
      held = false;
    },
  };
}

function systemError(errno: number, file: string): NodeJS.ErrnoException {
  const code = Object.entries(os.constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
  return Object.assign(new Error(`${code}: flock '${file}'`), { code, errno: -errno, syscall: "flock", path: file });
}
