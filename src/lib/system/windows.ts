import { dlopen, ptr } from "bun:ffi";
import path from "node:path";

/** What is needed of kernel32, which every Windows has. Handles are numbers of 64 bits. */
const CALLS = {
  CreateFileW: { args: ["ptr", "u32", "u32", "u64", "u32", "u32", "u64"], returns: "u64" },
  LockFileEx: { args: ["u64", "u32", "u32", "u32", "u32", "ptr"], returns: "i32" },
  OpenProcess: { args: ["u32", "i32", "u32"], returns: "u64" },
  WaitForSingleObject: { args: ["u64", "u32"], returns: "u32" },
  GetProcessTimes: { args: ["u64", "ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  CloseHandle: { args: ["u64"], returns: "i32" },
  GetLastError: { args: [], returns: "u32" },
} as const satisfies Parameters<typeof dlopen>[1];

let loaded: ReturnType<typeof dlopen<typeof CALLS>>["symbols"] | undefined;

/** Load on first use, as libc.ts does. */
function kernel() {
  loaded ??= dlopen("kernel32.dll", CALLS).symbols;
  return loaded;
}

/** An open handle, or the code of GetLastError. */
export type Opened = { readonly handle: bigint } | { readonly error: number };

/** What the calls here can say (winerror.h). */
export const WIN_ERROR = { accessDenied: 5, sharingViolation: 32, lockViolation: 33, ioPending: 997 } as const;

const INVALID_HANDLE = 0xffff_ffff_ffff_ffffn;
const GENERIC_READ_WRITE = 0xc000_0000;
const SHARE_ALL = 1 | 2 | 4;
const OPEN_EXISTING = 3;
const ATTRIBUTE_NORMAL = 0x80;
const LOCK_EXCLUSIVE_AT_ONCE = 1 | 2;

/**
 * Open a file that exists and lock it exclusively without waiting (LockFileEx). The byte that is locked lies where no content ever is, so that
 * others read and write the file as they like. The lock ends with the handle, and so with the process. Children get none of it.
 */
export function openLocked(file: string): Opened {
  const name = Buffer.from(`${path.toNamespacedPath(path.resolve(file))}\0`, "utf16le");
  const { CreateFileW, LockFileEx, GetLastError } = kernel();
  const handle = BigInt(CreateFileW(ptr(name), GENERIC_READ_WRITE, SHARE_ALL, 0n, OPEN_EXISTING, ATTRIBUTE_NORMAL, 0n));
  if (handle === INVALID_HANDLE) return { error: GetLastError() };
  // OVERLAPPED: two words of 64 bits for the system, the offset in halves, a handle.
  const overlapped = new Uint32Array(8);
  overlapped[4] = 0xffff_fffe;
  overlapped[5] = 0x7fff_ffff;
  if (LockFileEx(handle, LOCK_EXCLUSIVE_AT_ONCE, 0, 1, 0, ptr(overlapped)) !== 0) return { handle };
  const error = GetLastError();
  closeHandle(handle);
  return { error };
}

export const closeHandle = (handle: bigint): void => void kernel().CloseHandle(handle);

const SYNCHRONIZE_AND_QUERY = 0x0010_0000 | 0x1000;
const WAIT_TIMEOUT = 258;
/** FILETIME counts 100 ns from the beginning of 1601. */
const FILETIME_TO_UNIX_MS = 11_644_473_600_000;

/**
 * When a process was started, in milliseconds since 1970 (GetProcessTimes). Null when it has ended or never was; 0 where it runs and belongs to
 * somebody who does not let us look.
 */
export function startOfProcess(pid: number): number | null {
  const { OpenProcess, WaitForSingleObject, GetProcessTimes, GetLastError } = kernel();
  const handle = BigInt(OpenProcess(SYNCHRONIZE_AND_QUERY, 0, pid));
  if (handle === 0n) return GetLastError() === WIN_ERROR.accessDenied ? 0 : null;
  try {
    // A process that has ended can be opened for as long as somebody has a handle of it.
    if (WaitForSingleObject(handle, 0) !== WAIT_TIMEOUT) return null;
    const times = new BigUint64Array(4);
    const at = ptr(times);
    const known = GetProcessTimes(handle, at, ptr(times, 8), ptr(times, 16), ptr(times, 24)) !== 0;
    return known ? Number(times[0]! / 10_000n) - FILETIME_TO_UNIX_MS : 0;
  } finally {
    closeHandle(handle);
  }
}
