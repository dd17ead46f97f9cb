import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { createFileExclusive, makePrivateDirectory } from "../lib/files/atomic-file.ts";
import { readRegular } from "../lib/files/regular-file.ts";
import { makeKeyPair } from "../transport/session/key-pair.ts";

const MAX_BYTES = 256 * 1024;

/**
 * A private key of this installation's own, in the format of OpenSSH; made where there is none. Of several that make one at once, one is the key.
 *
 * @throws RelayError configuration_error where something else lies in its place, or others may read it
 */
export function ownKey(file: string, comment: string): string {
  makePrivateDirectory(path.dirname(file));
  const known = privateText(file);
  if (known !== null) return known;
  createFileExclusive(file, makeKeyPair(comment).privateKey);
  const made = privateText(file);
  if (made === null) throw new RelayError("configuration_error", `${file} was made and is gone again`, { path: file });
  return made;
}

/** Text of a file of the user's own; null where there is none. @throws RelayError configuration_error */
export function privateText(file: string): string | null {
  const found = readRegular(file, MAX_BYTES);
  if (found === "absent") return null;
  if (typeof found === "string") throw new RelayError("configuration_error", `${file} is no regular file of a few lines`, { path: file });
  const { mode, uid } = fs.lstatSync(file);
  if ((mode & 0o077) !== 0 || (process.getuid !== undefined && uid !== process.getuid())) {
    throw new RelayError("configuration_error", `${file} is open to others`, { path: file }, `chmod 600 ${file}`);
  }
  return found.text;
}
