import { dlopen, ptr } from "bun:ffi";

/** The C library calls that Bun does not offer. Loaded on first use, because loading costs a few megabytes. */
const SYMBOLS = {
  flock: { args: ["i32", "i32"], returns: "i32" },
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  pipe2: { args: ["ptr", "i32"], returns: "i32" },
  waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" },
  madvise: { args: ["u64", "u64", "i32"], returns: "i32" },
} as const;

const NAMES: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"],
};

type Libc = ReturnType<typeof dlopen<typeof SYMBOLS>>["symbols"];
let loaded: Libc | undefined;

function libc(): Libc {
  if (loaded === undefined) {
    const failures: unknown[] = [];
    for (const name of NAMES[process.platform] ?? []) {
      try {
        loaded = dlopen(name, SYMBOLS).symbols;
        break;
      } catch (error) {
        failures.push(error);
      }
    }
    if (loaded === undefined) throw new AggregateError(failures, `no C library could be loaded on ${process.platform}`);
  }
  return loaded;
}

/** flock(2): lock exclusively without waiting. False when somebody else holds it (or the file system refuses). */
export const tryFlock = (fd: number): boolean => libc().flock(fd, 2 | 4) === 0;

/** prctl(2), PR_SET_CHILD_SUBREAPER: orphaned descendants become children of this process. */
export const becomeSubreaper = (): boolean => libc().prctl(36, 1n, 0n, 0n, 0n) === 0;

/** pipe2(2) with O_CLOEXEC: read end, write end. */
export function pipe(): readonly [read: number, write: number] {
  const fds = new Int32Array(2);
  if (libc().pipe2(ptr(fds), 0o2000000) !== 0) throw new Error("pipe2 failed");
  return [fds[0]!, fds[1]!];
}

/** waitpid(2), WNOHANG, for one child: true when it was a zombie and is gone now. Never call it for a child that Bun started. */
export const reap = (pid: number): boolean => libc().waitpid(pid, null, 1) === pid;

/**
 * madvise(2), MADV_DONTNEED: take the pages of [start, end) out of this process's resident set. Only for mappings of a file without
 * pages of their own: those come back from the page cache when they are touched, anything else would be lost.
 */
export const dropPages = (start: bigint, end: bigint): boolean => libc().madvise(start, end - start, 4) === 0;
