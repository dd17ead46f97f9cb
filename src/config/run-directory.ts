import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";

type Owner = Pick<Environment, "uid" | "platform">;

/**
 * Make the run directory, and refuse one that is not the user's alone: whoever owns it decides who answers on its sockets.
 * `/tmp` lets anybody make a directory of our name first, or a link in its place.
 *
 * @throws RelayError resource_ownership_refused with the path and what to do
 */
export function prepareRunDirectory(paths: Paths, env: Owner): void {
  // Each is checked before anything is made in it, so that a link never leads elsewhere.
  for (const directory of ownDirectories(paths)) {
    try {
      fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    } catch (error) {
      // What lies there instead is named by the check.
      if (!isErrno(error, "EEXIST", "ENOTDIR", "ENOENT")) throw error;
      if (fs.lstatSync(directory, { throwIfNoEntry: false }) === undefined) throw error;
    }
    check(directory, env);
  }
}

/**
 * The same check without making anything; for those who only connect. A directory that does not exist passes.
 *
 * @throws RelayError resource_ownership_refused
 */
export function checkRunDirectory(paths: Paths, env: Owner): void {
  for (const directory of ownDirectories(paths)) if (!check(directory, env)) return;
}

/** Whether the directory is there. */
function check(directory: string, env: Owner): boolean {
  const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  if (!stat.isDirectory()) refuse(directory, "is not a directory", `rm ${directory}`);
  if (env.platform === "win32") return true;
  if (stat.uid !== env.uid) {
    refuse(directory, `is owned by user ${stat.uid}, not by you (${env.uid})`, "set CLIO_RELAY_HOME to a directory of your own");
  }
  if ((stat.mode & 0o077) !== 0) refuse(directory, "is open to other users", `chmod 700 ${directory}`);
  return true;
}

/** The directories that are ours alone, outermost first: one below CLIO_RELAY_HOME, two where the first has all installations of a user. */
const ownDirectories = (paths: Paths): readonly string[] =>
  paths.runDir === path.join(paths.base, "run") ? [paths.runDir] : [path.dirname(paths.runDir), paths.runDir];

function refuse(directory: string, what: string, hint: string): never {
  throw new RelayError("resource_ownership_refused", `${directory} holds the relay's sockets, but ${what}`, { path: directory }, hint);
}
