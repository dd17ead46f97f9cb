import fs from "node:fs";
import { RelayError } from "../domain/errors.ts";
import { readSmallFile } from "../lib/files/regular-file.ts";

const MAX_BYTES = 1024 * 1024;

/**
 * Text of a file in PEM (RFC 7468).
 *
 * @param file absolute
 * @param what the end of the label that it has to have
 * @throws RelayError configuration_error
 */
export function readPem(file: string, what: "CERTIFICATE" | "PRIVATE KEY"): string {
  let read: string | null;
  try {
    read = readSmallFile(file, MAX_BYTES);
  } catch (error) {
    throw new RelayError("configuration_error", `${file} cannot be read: ${(error as Error).message}`, { path: file }, undefined, {
      cause: error,
    });
  }
  if (read === null) throw new RelayError("configuration_error", `${file} is not there`, { path: file });
  if (!read.includes(`${what}-----`)) throw new RelayError("configuration_error", `${file} has no ${what} in PEM`, { path: file });
  if (what === "PRIVATE KEY") refuseOpen(file);
  return read;
}

/** A group may read it, since systems have one for keys; Windows has no modes. */
function refuseOpen(file: string): void {
  if (process.platform === "win32" || (fs.statSync(file).mode & 0o007) === 0) return;
  throw new RelayError(
    "configuration_error",
    `${file} is a private key that every user of this machine can read`,
    { path: file },
    `chmod 600 ${file}`,
  );
}
