import fs from "node:fs";
import { isErrno } from "./atomic-file.ts";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

/** Why there is no regular file to read: nothing has that name, or something else has: a pipe, a device, a directory, a link. */
export type NoFile = "absent" | "not_a_file";

/** Whether a symbolic link in the place of the file counts as one, or as something else. */
export type Links = "follow" | "refuse";

// Without O_NONBLOCK, opening a named pipe waits for a writer (fifo(7)).
const flags = (links: Links): number => O_RDONLY | O_NONBLOCK | (links === "refuse" ? O_NOFOLLOW : 0);

function noFile(error: unknown): NoFile {
  if (isErrno(error, "ENOENT", "ENOTDIR")) return "absent";
  if (isErrno(error, "ELOOP", "ENXIO", "ENODEV", "EISDIR")) return "not_a_file";
  throw error;
}

/**
 * Open a file of which anybody may have taken the place: never waits, and gives nothing but a regular file. The caller closes it.
 *
 * @throws the system's error when it is there and cannot be opened
 */
export function openRegular(file: string, links: Links = "refuse"): { readonly fd: number; readonly size: number } | NoFile {
  let fd: number;
  try {
    fd = fs.openSync(file, flags(links));
  } catch (error) {
    return noFile(error);
  }
  const stat = fs.fstatSync(fd);
  if (stat.isFile()) return { fd, size: stat.size };
  fs.closeSync(fd);
  return "not_a_file";
}

/** openRegular for reading piece by piece, off the event loop. */
export async function openRegularHandle(file: string): Promise<fs.promises.FileHandle | NoFile> {
  let handle: fs.promises.FileHandle;
  try {
    handle = await fs.promises.open(file, flags("refuse"));
  } catch (error) {
    return noFile(error);
  }
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  return "not_a_file";
}

/** Size in bytes of a regular file; why there is none otherwise. */
export function regularSize(file: string): number | NoFile {
  try {
    const stat = fs.lstatSync(file);
    return stat.isFile() ? stat.size : "not_a_file";
  } catch (error) {
    return noFile(error);
  }
}

/** The text of a regular file of at most `maxBytes`, however it changes meanwhile. */
export function readRegular(file: string, maxBytes: number, links: Links = "refuse"): { readonly text: string } | NoFile | "too_large" {
  const opened = openRegular(file, links);
  if (typeof opened === "string") return opened;
  const { fd, size } = opened;
  try {
    if (size > maxBytes) return "too_large";
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const chunk = Buffer.allocUnsafe(Math.max(1, Math.min(size, maxBytes) + 1 - length));
      const count = fs.readSync(fd, chunk, 0, chunk.length, length);
      if (count === 0) return { text: Buffer.concat(chunks).toString("utf8") };
      chunks.push(chunk.subarray(0, count));
      length += count;
      if (length > maxBytes) return "too_large";
    }
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Contents of a small file as text, or null when it does not exist. Symbolic links are followed.
 *
 * @throws RangeError when it is larger than `maxBytes`, or no regular file
 */
export function readSmallFile(file: string, maxBytes: number): string | null {
  const found = readRegular(file, maxBytes, "follow");
  if (found === "absent") return null;
  if (typeof found !== "string") return found.text;
  throw new RangeError(found === "too_large" ? `${file} holds more than ${maxBytes} bytes` : `${file} is not a regular file`);
}

/** Fill `bytes` from a position of a file on, in bytes, as far as the file goes; how many that were. */
export async function readUpTo(handle: fs.promises.FileHandle, bytes: Buffer, position: number): Promise<number> {
  let count = 0;
  while (count < bytes.length) {
    const { bytesRead } = await handle.read(bytes, count, bytes.length - count, position + count);
    if (bytesRead === 0) break;
    count += bytesRead;
  }
  return count;
}
