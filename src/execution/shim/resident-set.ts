import fs from "node:fs";
import { dropPages } from "../../lib/system/libc.ts";

const HEADER = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [0-9a-f]+ [0-9a-f:]+ (\d+)/;
const WORTHWHILE_KB = 64;

/** Resident set of this process in bytes (proc_pid_status(5)); 0 where that cannot be known. */
export function residentBytes(): number {
  if (process.platform !== "linux") return 0;
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync("/proc/self/status", "latin1"))?.[1] ?? 0) * 1024;
}

/**
 * Take the pages of the executable that starting up has touched out of the resident set: a shim that only waits needs few of
 * them, and those come back from the page cache. Only read-only private mappings of files without a single page of their own
 * (proc_pid_smaps(5), Anonymous) are touched; relocated data has such pages and is left alone.
 */
export function shrinkResidentSet(): void {
  if (process.platform !== "linux") return;
  let candidate: { start: bigint; end: bigint; rss: number } | null = null;
  for (const line of fs.readFileSync("/proc/self/smaps", "latin1").split("\n")) {
    const header = HEADER.exec(line);
    if (header !== null) {
      candidate = header[3] === "0" ? null : { start: BigInt(`0x${header[1]}`), end: BigInt(`0x${header[2]}`), rss: 0 };
      continue;
    }
    if (/^[0-9a-f]+-/.test(line)) candidate = null;
    if (candidate === null) continue;
    if (line.startsWith("Rss:")) candidate.rss = kilobytes(line);
    else if (line.startsWith("Anonymous:")) {
      if (kilobytes(line) === 0 && candidate.rss >= WORTHWHILE_KB) dropPages(candidate.start, candidate.end);
      candidate = null;
    }
  }
}

const kilobytes = (line: string): number => Number(/(\d+) kB/.exec(line)?.[1] ?? 0);
