import fs from "node:fs";
import { RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import type { Environment } from "./environment.ts";

/**
 * Text of a file that only its owner may read or write; null when there is none. Followed links, other owners and wider modes are
 * refused, because whoever can change the file decides what it says.
 *
 * @throws RelayError configuration_error that names the file and what to do
 */
export function readPrivateFile(file: string, maxBytes: number, env: Pick<Environment, "uid" | "platform">): string | null {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDONLY | (fs.constants.O_NOFOLLOW ?? 0) | (fs.constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return null;
    if (isErrno(error, "ELOOP", "EMLINK")) refuse(file, "is a symbolic link", "put the file itself there");
    throw new RelayError("configuration_error", `${file} cannot be opened: ${(error as Error).message}`, { path: file }, undefined, {
      cause: error,
    });
  }
  try {
    const stat = fs.fstatSync(fd);
    if (!stat.isFile()) refuse(file, "is not a regular file", "put a file there");
    if (env.platform !== "win32") {
      if (stat.uid !== env.uid) {
        const ofRoot = `sudo install -m 0600 -o root ${file} COPY makes one of root's, to be named instead; or run this as user ${stat.uid}`;
        refuse(file, `is owned by user ${stat.uid}, not by you (${env.uid})`, env.uid === 0 ? ofRoot : `chown or remove ${file}`);
      }
      if (stat.nlink > 1) refuse(file, "has another name (hard link)", "keep one name of it");
      if ((stat.mode & 0o077) !== 0) refuse(file, "is open to other users", `chmod 600 ${file}`);
    }
    if (stat.size > maxBytes) refuse(file, `holds ${stat.size} bytes, more than ${maxBytes}`, "make it smaller");
    return fs.readFileSync(fd, "utf8");
  } finally {
    fs.closeSync(fd);
  }
}

function refuse(file: string, what: string, hint: string): never {
  throw new RelayError("configuration_error", `${file} ${what}`, { path: file }, hint);
}
