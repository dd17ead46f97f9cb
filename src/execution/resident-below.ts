import fs from "node:fs";
import { descendantsOf } from "./process-table.ts";

/** Resident memory of everything below a process, in bytes (proc_pid_status(5)); what ends meanwhile counts nothing. */
export const residentBytesBelow = (root: number): number => descendantsOf(root).reduce((sum, { pid }) => sum + residentBytesOf(pid), 0);

function residentBytesOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
