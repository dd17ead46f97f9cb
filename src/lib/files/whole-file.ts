import fs from "node:fs";
import path from "node:path";
import { besideName, fsyncDirectory } from "./atomic-file.ts";

/** A file in the making, piece by piece. Nothing has its name until `finish`; after `discard`, or a crash, nothing ever has. */
export interface FileInTheMaking {
  write(bytes: Uint8Array): Promise<void>;
  /** Flush, and take the name; an existing file is replaced. Returns what has the name then. */
  finish(): Promise<fs.BigIntStats>;
  /** Give up. After finish it does nothing. */
  discard(): Promise<void>;
}

export interface WholeFileOptions {
  /** Permissions; without them those of the file that is replaced, or what the umask leaves to a new one. */
  readonly mode?: number;
  /** False when the caller flushes the directory, once for many files. */
  readonly flushDirectory?: boolean;
}

/** Begin a file beside its final name, so that taking the name is one rename(2). */
export async function makeWholeFile(target: string, options: WholeFileOptions = {}): Promise<FileInTheMaking> {
  const before = options.mode === undefined ? fs.statSync(target, { throwIfNoEntry: false }) : undefined;
  const mode = options.mode ?? (before?.isFile() ? before.mode & 0o777 : undefined);
  const temporary = besideName(target, "part");
  const handle = await fs.promises.open(temporary, "wx", mode ?? 0o666);
  let open = true;
  const close = async (): Promise<void> => {
    if (open) await handle.close();
    open = false;
  };
  const discard = async (): Promise<void> => {
    await close();
    await fs.promises.rm(temporary, { force: true });
  };
  try {
    if (mode !== undefined) await handle.chmod(mode);
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    async write(bytes) {
      for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at, bytes.length - at)).bytesWritten;
    },
    async finish() {
      await handle.sync();
      await fs.promises.rename(temporary, target);
      // After the rename, which changes the time of the last change.
      const stat = await handle.stat({ bigint: true });
      await close();
      if (options.flushDirectory !== false) fsyncDirectory(path.dirname(target));
      return stat;
    },
    discard,
  };
}
