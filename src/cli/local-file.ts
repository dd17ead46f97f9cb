import fs from "node:fs";
import { namedFileFailure } from "../config/named-file.ts";
import { RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import type { CliIo } from "./io.ts";
import { resolveLocal } from "./local-path.ts";

/**
 * Text of a file that an option names.
 *
 * @param where option and path as they were typed, for what is wrong
 * @param maxBytes checked before it is read
 * @throws RelayError local_file_missing, local_file_unusable, payload_too_large
 */
export function readLocalText(io: Pick<CliIo, "env">, where: string, given: string, maxBytes: number): string {
  let bytes: Uint8Array;
  try {
    const file = resolveLocal(io, given);
    const stat = fs.statSync(file);
    if (stat.isDirectory()) throw new RelayError("local_file_unusable", `${where}: that is a directory`);
    if (stat.size > maxBytes) throw tooLarge(where, stat.size, maxBytes);
    bytes = readBounded(file, maxBytes + 1);
  } catch (error) {
    if (given === "-" && isErrno(error, "ENOENT"))
      throw new RelayError("local_file_missing", `${where}: there is no such file`, {}, "/dev/stdin is standard input", { cause: error });
    throw error instanceof RelayError ? error : unusable(where, error);
  }
  // A pipe does not say its size before.
  if (bytes.length > maxBytes) throw tooLarge(where, null, maxBytes);
  return decodeText(bytes, where);
}

/**
 * Absolute path of a file or directory that another process is going to read: that it is not there is said before anybody is asked anything.
 *
 * @param where option and path as they were typed
 * @throws RelayError local_file_missing, local_file_unusable
 */
export function existing(io: Pick<CliIo, "env">, where: string, given: string): string {
  const file = resolveLocal(io, given);
  try {
    fs.statSync(file);
    return file;
  } catch (error) {
    throw unusable(where, error);
  }
}

/** At most so many bytes of a file, a pipe or a device. */
function readBounded(file: string, maxBytes: number): Uint8Array {
  const fd = fs.openSync(file, "r");
  try {
    const bytes = Buffer.allocUnsafe(maxBytes);
    let length = 0;
    while (length < maxBytes) {
      const count = fs.readSync(fd, bytes, length, maxBytes - length, null);
      if (count === 0) break;
      length += count;
    }
    return bytes.subarray(0, length);
  } finally {
    fs.closeSync(fd);
  }
}

/** Bytes as text. @throws RelayError local_file_unusable */
export function decodeText(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new RelayError("local_file_unusable", `${what} is not UTF-8 text`);
  }
}

const tooLarge = (where: string, size: number | null, maxBytes: number): RelayError =>
  new RelayError(
    "payload_too_large",
    `${where} holds ${size === null ? "" : `${size} bytes, `}more than ${maxBytes}${size === null ? " bytes" : ""}`,
    {
      max_bytes: maxBytes,
    },
  );

/** The failure of a file that is to be written where there is no directory for it. @param where the option as it was typed */
export const noDirectory = (where: string, directory: string): RelayError =>
  new RelayError("local_file_missing", `${where}: there is no directory ${directory}`);

/** A system's refusal of a directory that files are to be written into. @param where the option as it was typed */
export const unusableDirectory = (where: string, error: unknown): unknown =>
  isErrno(error, "ENOTDIR", "EEXIST")
    ? new RelayError("local_file_unusable", `${where}: that is not a directory`, {}, undefined, { cause: error })
    : unusable(where, error);

/** A system's refusal of a path, with the words that a person knows the path by. Anything else stays what it is. */
export function unusable(where: string, error: unknown): unknown {
  return namedFileFailure(where, error) ?? error;
}
