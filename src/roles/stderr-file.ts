import fs from "node:fs";
import { duplicate } from "../lib/system/libc.ts";

/** Size at which a log is put aside as `<name>.1`, in place of the one before; both together are the bound. */
export const ROTATE_BYTES = 4 * 1024 * 1024;

const STDERR = 2;

/** Put a log aside when it has reached its bound. Only for one that nobody has open, or whose writers open it anew. */
export function putAside(file: string, maxBytes = ROTATE_BYTES): void {
  const size = fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size >= maxBytes) fs.renameSync(file, `${file}.1`);
}

export interface StderrFile {
  /** Put the file aside when it is too large, and go on in a new one; so, too, when it was taken away. */
  look(): void;
  /** Look, and write at once. What cannot be written is dropped: the log is never a reason to fail. */
  write(text: string): void;
}

/**
 * Keep the file that this process's standard error goes to within a bound: what is written here, and what the runtime says of a crash.
 * (`process.stderr` keeps the file that it began with.) Null where standard error is
 * something else than that file: then it is not ours to put aside.
 */
export function stderrFile(file: string, maxBytes = ROTATE_BYTES): StderrFile | null {
  if (process.platform === "win32" || !isStderr(file)) return null;
  const look = (): void => {
    try {
      if (isStderr(file)) {
        if (fs.fstatSync(STDERR).size < maxBytes) return;
        putAside(file, maxBytes);
      }
      const fd = fs.openSync(file, "a", 0o600);
      duplicate(fd, STDERR);
      fs.closeSync(fd);
    } catch {
      // There is nowhere else to say so.
    }
  };
  return {
    look,
    write(text) {
      look();
      try {
        fs.writeSync(STDERR, text);
      } catch {
        // The same.
      }
    },
  };
}

function isStderr(file: string): boolean {
  const named = fs.statSync(file, { throwIfNoEntry: false });
  const open = fs.fstatSync(STDERR);
  return named !== undefined && named.dev === open.dev && named.ino === open.ino;
}
