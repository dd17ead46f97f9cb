import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

/** An open file, and what it was when it was opened. */
export interface OpenFile {
  readonly handle: fs.promises.FileHandle;
  readonly stat: fs.BigIntStats;
}

/**
 * Open a regular file below a directory, following no symbolic link on the way down from it, whoever changes the tree meanwhile: each
 * step is opened relative to the last through /proc/self/fd. The directory itself may be reached through links.
 *
 * @param relative path below `root`, without `.`, `..` and empty parts
 * @throws RelayError path_escapes_root for a link or an unsuitable path, artifact_unreadable for everything else that is in the way
 */
export async function openBeneath(root: string, relative: string): Promise<OpenFile> {
  const parts = relative.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..")) throw escapes(relative);
  const name = parts.pop()!;
  let directory = await opened(root, O_RDONLY | O_DIRECTORY, relative);
  try {
    for (const part of parts) {
      const next = await opened(step(directory, part), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, relative);
      await directory.close();
      directory = next;
    }
    // O_NONBLOCK: opening a named pipe would wait for a writer.
    return await regular(await opened(step(directory, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, relative), relative);
  } finally {
    await directory.close();
  }
}

const step = (directory: fs.promises.FileHandle, part: string): string => `/proc/self/fd/${directory.fd}/${part}`;

async function opened(file: string, flags: number, relative: string): Promise<fs.promises.FileHandle> {
  try {
    return await fs.promises.open(file, flags);
  } catch (error) {
    // With O_DIRECTORY, a link gives ENOTDIR and not ELOOP (open(2)).
    if (isErrno(error, "ELOOP") || (isErrno(error, "ENOTDIR") && (flags & O_NOFOLLOW) !== 0 && (await isLink(file))))
      throw escapes(relative);
    throw unreadable(relative, error);
  }
}

async function isLink(file: string): Promise<boolean> {
  try {
    return (await fs.promises.lstat(file)).isSymbolicLink();
  } catch {
    return false;
  }
}

async function regular(handle: fs.promises.FileHandle, relative: string): Promise<OpenFile> {
  try {
    const stat = await handle.stat({ bigint: true });
    if (stat.isFile()) return { handle, stat };
  } catch (error) {
    await handle.close();
    throw unreadable(relative, error);
  }
  await handle.close();
  throw new RelayError("artifact_unreadable", `not a regular file: ${relative}`, { path: relative });
}

const escapes = (relative: string): RelayError =>
  new RelayError("path_escapes_root", `the path leaves its root, or leads over a symbolic link: ${relative}`, { path: relative });

function unreadable(relative: string, error: unknown): RelayError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  return new RelayError(
    "artifact_unreadable",
    `cannot be opened (${code}): ${relative}`,
    { path: relative, system_code: code },
    undefined,
    {
      cause: error,
    },
  );
}

/** Whether a path is a directory or lies below it. Both absolute and without links, as realpath(3) gives them. */
export const isBeneath = (root: string, file: string): boolean => {
  const relative = path.relative(root, file);
  return relative === "" || (relative.split(path.sep)[0] !== ".." && !path.isAbsolute(relative));
};
