import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../lib/files/atomic-file.ts";
import { HeldDirectory } from "../lib/files/held-directory.ts";
import { type NoFile, openRegularHandle } from "../lib/files/regular-file.ts";
import { FILES } from "./spool-records.ts";

/*
 * Directories of the spool as nobody but the relay made them. A job can put a link in the place of its own ones; what that leads to is
 * neither read nor written, so each is opened step by step from the cluster's spool on.
 */

/** Hold an attempt's directory, or one below it. @throws ENOENT, or ENOTDIR for what is none, links included */
export function holdAttempt(attemptDir: string, ...below: readonly string[]): HeldDirectory {
  const jobDir = path.dirname(attemptDir);
  return new HeldDirectory(path.dirname(jobDir), path.basename(jobDir), path.basename(attemptDir), ...below);
}

/** Do something in an attempt's directory, given a path of it that nobody can change; `otherwise` where there is no such directory. */
export function inAttempt<T, N>(attemptDir: string, work: (place: string) => T, otherwise: N): T | N {
  const held = orNone(() => holdAttempt(attemptDir));
  if (held === null) return otherwise;
  using place = held;
  return work(place.path);
}

/** The same in the directory of its reports. */
export function reportsIn<T, N>(attemptDir: string, work: (place: string) => T, otherwise: N): T | N {
  const held = orNone(() => holdAttempt(attemptDir, FILES.events));
  if (held === null) return otherwise;
  using place = held;
  return work(place.path);
}

/** Something about a file in an attempt's directory, by its name `<spool>/<job>/attempt-<n>/<file>`. */
export const ofAttemptFile = <T, N>(file: string, work: (file: string) => T, otherwise: N): T | N =>
  inAttempt(path.dirname(file), (place) => work(path.join(place, path.basename(file))), otherwise);

/** Open it for reading piece by piece, off the event loop. */
export async function openAttemptFile(file: string): Promise<fs.promises.FileHandle | NoFile> {
  const held = orNone(() => holdAttempt(path.dirname(file)));
  if (held === null) return "absent";
  using place = held;
  return await openRegularHandle(path.join(place.path, path.basename(file)));
}

/** Hold the directory of a job's copies; it is made where there is none. @throws as holdAttempt */
export function holdArtifacts(jobDir: string): HeldDirectory {
  using job = new HeldDirectory(path.dirname(jobDir), path.basename(jobDir));
  const directory = path.join(job.path, "artifacts");
  try {
    fs.mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  }
  return new HeldDirectory(job.path, "artifacts");
}

/** The same where it is there; null where it is not, or something else has its place. */
export const existingArtifacts = (jobDir: string): HeldDirectory | null =>
  orNone(() => new HeldDirectory(path.dirname(jobDir), path.basename(jobDir), "artifacts"));

/** What an attempt's place holds: its directory, nothing, or something that is no directory of the relay's. */
export function attemptPlace(attemptDir: string): "directory" | "absent" | "other" {
  for (const directory of [path.dirname(attemptDir), attemptDir]) {
    const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
    if (stat === undefined) return "absent";
    if (!stat.isDirectory()) return "other";
  }
  return "directory";
}

/** Remove a link that has the place of the job's or the attempt's directory: what is made there would be made elsewhere. */
export function clearPlace(attemptDir: string): void {
  for (const directory of [path.dirname(attemptDir), attemptDir]) {
    const stat = fs.lstatSync(directory, { throwIfNoEntry: false });
    if (stat?.isSymbolicLink()) fs.unlinkSync(directory);
  }
}

function orNone(hold: () => HeldDirectory): HeldDirectory | null {
  try {
    return hold();
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return null;
    throw error;
  }
}
