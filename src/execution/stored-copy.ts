import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory, isErrno } from "../lib/files/atomic-file.ts";
import { type FileInTheMaking, makeWholeFile } from "../lib/files/whole-file.ts";

/** Up to this size a document is written at once, without a thread. */
const SMALL_BYTES = 64 * 1024;

/** A document on its way into a directory of the spool. */
export interface DocumentText {
  /** Of the file, which nothing has and nobody knows before the document is recorded. */
  readonly name: string;
  readonly text: string;
}

/** Begin a copy in a directory of the spool, which exists. Its name is made durable by flushDirectory, once for many. */
export function beginCopy(directory: string, name: string): Promise<FileInTheMaking> {
  return makeWholeFile(path.join(directory, name), { mode: 0o600, flushDirectory: false });
}

/** Make the names of finished copies durable. */
export const flushDirectory = (directory: string): void => fsyncDirectory(directory);

/**
 * Write documents, all of them or, when that throws, none. They and the entries that lead to them are flushed at the same time, for which a file system
 * writes its journal about once.
 *
 * @param above directories over `directory` whose entries are flushed, too
 * @returns what each was when it had been written
 */
export async function storeDocuments(
  directory: string,
  documents: readonly DocumentText[],
  above: readonly string[] = [],
): Promise<fs.BigIntStats[]> {
  const open: { readonly fd: number; readonly file: string }[] = [];
  try {
    for (const { name, text } of documents) {
      const file = path.join(directory, name);
      const fd = fs.openSync(file, "wx", 0o600);
      open.push({ fd, file });
      await writeAll(fd, Buffer.from(text));
    }
    await Promise.all([...open.map(({ fd }) => flushed(fd)), flushDirectories([directory, ...above])]);
    return open.map(({ fd }) => fs.fstatSync(fd, { bigint: true }));
  } catch (error) {
    for (const { file } of open) fs.rmSync(file, { force: true });
    throw error;
  } finally {
    for (const { fd } of open) fs.closeSync(fd);
  }
}

/** Flush the entries of directories at the same time, in threads. File systems that cannot are passed over, as by fsyncDirectory. */
export async function flushDirectories(directories: readonly string[]): Promise<void> {
  const open: number[] = [];
  try {
    for (const directory of directories) open.push(fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY));
    await Promise.all(open.map((fd) => flushed(fd).catch(unlessUnable)));
  } finally {
    for (const fd of open) fs.closeSync(fd);
  }
}

function unlessUnable(error: unknown): void {
  if (!isErrno(error, "EINVAL", "ENOTSUP")) throw error;
}

const flushed = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fs.fsync(fd, (error) => (error === null ? resolve() : reject(error))));

async function writeAll(fd: number, bytes: Uint8Array): Promise<void> {
  if (bytes.length <= SMALL_BYTES) {
    for (let at = 0; at < bytes.length; ) at += fs.writeSync(fd, bytes, at, bytes.length - at);
    return;
  }
  for (let at = 0; at < bytes.length; )
    at += await new Promise<number>((resolve, reject) => {
      fs.write(fd, bytes, at, bytes.length - at, null, (error, count) => (error === null ? resolve(count) : reject(error)));
    });
}
