import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory } from "./atomic-file.ts";

/** A file in the making. Nothing has its name until `finish`; after `discard`, or a crash, nothing ever has. */
export interface FileInTheMaking {
  write(bytes: Uint8Array): void;
  /** Flush, and take the name; an existing file is replaced. */
  finish(): void;
  /** Give up. After finish it does nothing. */
  discard(): void;
}

/**
 * Begin a file beside its final name, so that taking the name is one rename(2). It has the permissions of the file that it replaces
 * from the beginning, or those that the umask leaves to a new one.
 */
export function makeWholeFile(target: string): FileInTheMaking {
  const before = fs.statSync(target, { throwIfNoEntry: false });
  const kept = before?.isFile() ? before.mode & 0o777 : null;
  const temporary = path.join(path.dirname(target), `.${path.basename(target)}.${process.pid}.${crypto.randomUUID().slice(0, 8)}.part`);
  const fd = fs.openSync(temporary, "wx", kept ?? 0o666);
  if (kept !== null) fs.fchmodSync(fd, kept);
  let open = true;
  const close = () => {
    if (open) fs.closeSync(fd);
    open = false;
  };
  return {
    write(bytes) {
      for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at);
    },
    finish() {
      fs.fsyncSync(fd);
      close();
      fs.renameSync(temporary, target);
      fsyncDirectory(path.dirname(target));
    },
    discard() {
      close();
      fs.rmSync(temporary, { force: true });
    },
  };
}
