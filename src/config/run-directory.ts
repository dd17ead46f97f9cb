import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/atomic-file.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";

/**
 * Make the run directory, and refuse one that is not the user's alone: whoever owns it decides who answers on its sockets.
 * `/tmp` lets anybody make a directory of our name first, or a link in its place.
 *
 * @throws RelayError resource_ownership_refused with the path and what to do
 */
export function prepareRunDirectory(paths: Paths, env: Pick<Environment, "uid" | "platform">): void {
  for (const directory of ownDirectories(paths)) {
    try {
      fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    } catch (error) {
      // What lies there instead is named by the check.
      if (!isErrno(error, "EEXIST", "ENOTDIR")) throw error;
    }
  }
  checkRunDirectory(paths, env);
}

/**
 * The same check without making anything; for those who only connect. A directory that does not exist passes.
 *
 * @throws RelayError resource_ownership_refused
 */
export function checkRunDirectory(paths: Paths, env: Pick<Environment, "uid" | "platform">): void {
  if (env.platform === "win32") return;
  for (const directory of ownDirectories(paths)) {
    const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
    if (stat === undefined) return;
    if (stat.isSymbolicLink() || !stat.isDirectory()) refuse(directory, "is not a directory", `rm ${directory}`);
    if (stat.uid !== env.uid)
      refuse(directory, `is owned by user ${stat.uid}, not by you (${env.uid})`, "set CLIO_RELAY_HOME to a directory of your own");
    if ((stat.mode & 0o077) !== 0) refuse(directory, "is open to other users", `chmod 700 ${directory}`);
  }
}

/** The directories that are ours alone, outermost first: one below CLIO_RELAY_HOME, two where the first has all installations of a user. */
const ownDirectories = (paths: Paths): readonly string[] =>
  paths.runDir === path.join(paths.base, "run") ? [paths.runDir] : [path.dirname(paths.runDir), paths.runDir];

function refuse(directory: string, what: string, hint: string): never {
  throw new RelayError("resource_ownership_refused", `${directory} holds the relay's sockets, but ${what}`, { path: directory }, hint);
}
