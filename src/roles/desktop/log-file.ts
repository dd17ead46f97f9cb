import fs from "node:fs";
import path from "node:path";
import { makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { type Level, logLine } from "../log-line.ts";
import { putAside, ROTATE_BYTES } from "../stderr-file.ts";

/** A log of lines with a bound. A line that cannot be written is dropped: the log is never a reason to fail. */
export class LogFile {
  constructor(
    private readonly file: string,
    private readonly clock: Clock,
    private readonly rotateBytes = ROTATE_BYTES,
  ) {
    makePrivateDirectory(path.dirname(file));
  }

  write(level: Level, message: string): void {
    const line = logLine(this.clock, level, message);
    try {
      putAside(this.file, Math.max(1, this.rotateBytes - Buffer.byteLength(line) + 1));
      fs.appendFileSync(this.file, line, { mode: 0o600 });
    } catch {
      // There is nowhere else to say so.
    }
  }
}

/** The last `lines` lines of a log, at most 1 MiB of it, and the offset behind them. Missing logs are empty. */
export function tailOf(file: string, lines: number): { text: string; offset: number } {
  const size = fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const start = Math.max(0, size - 1024 * 1024);
  const parts = readFrom(file, start, size).toString("utf8").split("\n");
  return { text: parts.slice(-lines - 1).join("\n"), offset: size };
}

/** Bytes of a log from an offset on; from the beginning when it has been replaced by a shorter one. */
export function newBytes(file: string, offset: number): { bytes: Uint8Array; offset: number } {
  const size = fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const start = size < offset ? 0 : offset;
  return { bytes: size === start ? new Uint8Array() : readFrom(file, start, size), offset: size };
}

function readFrom(file: string, start: number, end: number): Buffer {
  if (end <= start) return Buffer.alloc(0);
  const fd = fs.openSync(file, "r");
  try {
    const buffer = Buffer.alloc(Math.min(end - start, 1024 * 1024));
    return buffer.subarray(0, fs.readSync(fd, buffer, 0, buffer.length, start));
  } finally {
    fs.closeSync(fd);
  }
}
