import type fs from "node:fs";
import path from "node:path";
import { fsyncDirectory } from "../lib/atomic-file.ts";
import { type FileInTheMaking, makeWholeFile } from "../lib/whole-file.ts";

/** Begin a copy in a directory of the spool, which exists. Its name is made durable by flushDirectory, once for many. */
export function beginCopy(directory: string, name: string): Promise<FileInTheMaking> {
  return makeWholeFile(path.join(directory, name), { mode: 0o600, flushDirectory: false });
}

/** Make the names of finished copies durable. */
export const flushDirectory = (directory: string): void => fsyncDirectory(directory);

/** Write a small document as a whole. Returns what it was when it had been written. */
export async function storeDocument(directory: string, name: string, text: string): Promise<fs.BigIntStats> {
  const copy = await beginCopy(directory, name);
  try {
    await copy.write(Buffer.from(text));
    return await copy.finish();
  } finally {
    await copy.discard();
  }
}
