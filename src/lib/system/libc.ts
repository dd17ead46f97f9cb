import type { dlopen, Pointer } from "bun:ffi";
import { ADDRESS_SPACE, SystemLimit, softLimit } from "./process-limits.ts";

type Calls = Parameters<typeof dlopen>[1];

let loaded: typeof import("bun:ffi") | undefined;

/** Loaded when something is called: most commands call nothing here. */
function ffi(): typeof import("bun:ffi") {
  loaded ??= process.getBuiltinModule("bun:ffi") as typeof import("bun:ffi");
  return loaded;
}

/** The C library calls that Bun does not offer, where they exist. errno(3) is a function's result on each system, of another name. */
const FLOCK = { args: ["i32", "i32"], returns: "i32" } as const;
const LOCKING = { flock: FLOCK, __errno_location: { args: [], returns: "ptr" } } as const satisfies Calls;
const LOCKING_DARWIN = { flock: FLOCK, __error: { args: [], returns: "ptr" } } as const satisfies Calls;
const LINUX = {
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  pipe2: { args: ["ptr", "i32"], returns: "i32" },
  waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
  madvise: { args: ["u64", "u64", "i32"], returns: "i32" },
} as const satisfies Calls;
const DESCRIPTORS = { dup2: { args: ["i32", "i32"], returns: "i32" } } as const satisfies Calls;
const POLLING = { poll: { args: ["ptr", "u64", "i32"], returns: "i32" } } as const satisfies Calls;
const TERMINALS = {
  tcgetattr: { args: ["i32", "ptr"], returns: "i32" },
  tcsetattr: { args: ["i32", "i32", "ptr"], returns: "i32" },
} as const satisfies Calls;
const DIRECTORIES = {
  fdopendir: { args: ["i32"], returns: "ptr" },
  readdir: { args: ["ptr"], returns: "ptr" },
  closedir: { args: ["ptr"], returns: "i32" },
} as const satisfies Calls;

const NAMES: Partial<Record<NodeJS.Platform, readonly string[]>> = {
  linux: ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"],
  darwin: ["libSystem.B.dylib"],
};

/** Load on first use: it costs a few megabytes, and half of the calls exist on Linux only. */
function lazily<const C extends Calls>(calls: C) {
  let symbols: ReturnType<typeof dlopen<C>>["symbols"] | undefined;
  return () => {
    const failures: unknown[] = [];
    for (const name of symbols === undefined ? (NAMES[process.platform] ?? []) : []) {
      try {
        symbols = ffi().dlopen(name, calls).symbols;
        break;
      } catch (error) {
        failures.push(error);
      }
    }
    if (symbols === undefined) throw notLoaded(failures);
    return symbols;
  };
}

/** Calls of C need compiled code, for which JavaScriptCore reserves much more address space than it uses. Without it, they are what is missing. */
function notLoaded(failures: readonly unknown[]): Error {
  const limit = softLimit(ADDRESS_SPACE);
  const cause = new AggregateError(failures, `no C library could be loaded on ${process.platform}: ${failures.join("; ")}`);
  return limit === null ? cause : new SystemLimit(`the limit of the address space is ${limit} bytes, which is too little`, { cause });
}

const locking = lazily(LOCKING);
const lockingDarwin = lazily(LOCKING_DARWIN);
const linux = lazily(LINUX);
const directories = lazily(DIRECTORIES);
const descriptors = lazily(DESCRIPTORS);
const terminals = lazily(TERMINALS);
const polling = lazily(POLLING);

/** flock(2): lock exclusively without waiting. 0, or the errno; another holder is EWOULDBLOCK, which is EAGAIN here. */
export function flock(fd: number): number {
  const darwin = process.platform === "darwin";
  if ((darwin ? lockingDarwin() : locking()).flock(fd, 2 | 4) === 0) return 0;
  const errno = darwin ? lockingDarwin().__error() : locking().__errno_location();
  return ffi().read.i32(errno as Pointer, 0);
}

/** dup2(2): `target` becomes another name of the open file `fd`, in one step. */
export function duplicate(fd: number, target: number): void {
  if (descriptors().dup2(fd, target) !== target) throw new Error("dup2 failed");
}

/** POLLOUT, the same bit on both systems. */
const POLLOUT = 0b100;

/** poll(2) without waiting: whether a write of up to PIPE_BUF bytes would be taken at once. */
export function takesBytes(fd: number): boolean {
  // struct pollfd: the descriptor, what is asked, what is answered.
  const asked = new Int16Array(4);
  new Int32Array(asked.buffer)[0] = fd;
  asked[2] = POLLOUT;
  return polling().poll(ffi().ptr(asked), 1, 0) === 1 && (asked[3]! & POLLOUT) !== 0;
}

/** Larger than struct termios on each system. */
const TERMIOS_BYTES = 128;
/** Where c_lflag is in struct termios, after three flags of 4 bytes, on macOS of 8. ECHO is the same bit on both. */
const LOCAL_FLAGS = process.platform === "darwin" ? 24 : 12;
const ECHO = 0o10;

/** termios(3), tcgetattr: how a terminal behaves, for setTerminalModes. */
export function terminalModes(fd: number): Uint8Array {
  const modes = new Uint8Array(TERMIOS_BYTES);
  if (terminals().tcgetattr(fd, ffi().ptr(modes)) !== 0) throw new Error("tcgetattr failed");
  return modes;
}

/** The same modes, but what is typed is not shown. */
export function withoutEcho(modes: Uint8Array): Uint8Array {
  const silent = Uint8Array.from(modes);
  silent[LOCAL_FLAGS] = silent[LOCAL_FLAGS]! & ~ECHO;
  return silent;
}

/** tcsetattr with TCSAFLUSH: what was typed before is thrown away. */
export function setTerminalModes(fd: number, modes: Uint8Array): void {
  if (terminals().tcsetattr(fd, 2, ffi().ptr(modes)) !== 0) throw new Error("tcsetattr failed");
}

/** prctl(2), PR_SET_CHILD_SUBREAPER: orphaned descendants become children of this process. */
export const becomeSubreaper = (): boolean => linux().prctl(36, 1n, 0n, 0n, 0n) === 0;

/** pipe2(2) with O_CLOEXEC: read end, write end. @throws Error with `code`, EMFILE or ENFILE where there are too many open files */
export function pipe(): readonly [read: number, write: number] {
  const fds = new Int32Array(2);
  if (linux().pipe2(ffi().ptr(fds), 0o2000000) !== 0) {
    const errno = ffi().read.i32(linux().__errno_location() as Pointer, 0);
    const code =
      Object.entries(process.getBuiltinModule("node:os").constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`;
    throw Object.assign(new Error(`${code}: pipe2 failed`), { code, errno: -errno, syscall: "pipe2" });
  }
  return [fds[0]!, fds[1]!];
}

/** waitpid(2), WNOHANG, for one child: true when it was a zombie and is gone now. Never call it for a child that Bun started. */
export const reap = (pid: number): boolean => linux().waitpid(pid, null, 1) === pid;

/**
 * madvise(2), MADV_DONTNEED: take the pages of [start, end) out of this process's resident set. Only for mappings of a file without
 * pages of their own: those come back from the page cache when they are touched, anything else would be lost.
 */
export const dropPages = (start: bigint, end: bigint): boolean => linux().madvise(start, end - start, 4) === 0;

/** fdopendir(3). The descriptor belongs to the stream from then on. Linux only, as the two that follow. */
export function openDirectory(fd: number): Pointer {
  const stream = directories().fdopendir(fd);
  if (stream === null) throw new Error("fdopendir failed");
  // The types allow for a bigint, which user-space addresses never need.
  return stream as Pointer;
}

/** Where d_name is in struct dirent of 64-bit Linux (readdir(3)): after d_ino, d_off, d_reclen and d_type. */
const D_NAME = 8 + 8 + 2 + 1;

/** readdir(3): the next name; null at the end. */
export function nextEntry(stream: Pointer): string | null {
  const entry = directories().readdir(stream);
  return entry === null ? null : new (ffi().CString)(entry, D_NAME).toString();
}

/** closedir(3). */
export const closeDirectory = (stream: Pointer): void => void directories().closedir(stream);
