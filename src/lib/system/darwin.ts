import { dlopen, ptr } from "bun:ffi";

const CALLS = { proc_pidinfo: { args: ["i32", "i32", "u64", "ptr", "i32"], returns: "i32" } } as const satisfies Parameters<
  typeof dlopen
>[1];

let loaded: ReturnType<typeof dlopen<typeof CALLS>>["symbols"] | undefined;

const PROC_PIDTBSDINFO = 3;
/** struct proc_bsdinfo of sys/proc_info.h: its size, and where pbi_pid, pbi_start_tvsec and pbi_start_tvusec are. */
const BSDINFO = { bytes: 136, pid: 12, seconds: 120, microseconds: 128 } as const;

/** When a process was started, in milliseconds since 1970; 0 when that cannot be told. */
export function startOfProcess(pid: number): number {
  loaded ??= dlopen("libSystem.B.dylib", CALLS).symbols;
  const info = new DataView(new ArrayBuffer(BSDINFO.bytes));
  const length = loaded.proc_pidinfo(pid, PROC_PIDTBSDINFO, 0n, ptr(info), BSDINFO.bytes);
  if (length !== BSDINFO.bytes || info.getUint32(BSDINFO.pid, true) !== pid) return 0;
  return (
    Number(info.getBigUint64(BSDINFO.seconds, true)) * 1_000 + Math.floor(Number(info.getBigUint64(BSDINFO.microseconds, true)) / 1_000)
  );
}
