import fs from "node:fs";
import { RelayError } from "../domain/errors.ts";
import { fileSystemKind } from "../lib/files/file-system.ts";

/** What has a name: `file` for a regular file, words for anything else, null for nothing. Links are not followed. */
export function whatIs(name: string): "file" | string | null {
  const stat = fs.lstatSync(name, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "a directory";
  if (stat.isSymbolicLink()) return "a symbolic link";
  if (stat.isFIFO()) return "a named pipe";
  if (stat.isSocket()) return "a socket";
  return "a device";
}

/**
 * The queue's files are regular files, or not there: SQLite would wait for a pipe, and keep the log beside the file that a link leads to. The log
 * itself is looked at by whoever asks whether it is whole. A rollback journal is never the queue's, and SQLite would play it back.
 *
 * @param file the database
 * @throws RelayError queue_unavailable, naming what is there
 */
export function refuseOtherKinds(file: string): void {
  for (const name of [file, `${file}-shm`]) refuseOtherKind(name);
  const journal = `${file}-journal`;
  const there = whatIs(journal);
  if (there !== null) refuse(journal, there === "file" ? "a rollback journal, and the queue never has one" : there);
}

/** @throws RelayError queue_unavailable unless it is a regular file, or nothing has the name */
export function refuseOtherKind(file: string): void {
  const there = whatIs(file);
  if (there !== null && there !== "file") refuse(file, `${there}, and not a regular file`);
}

function refuse(file: string, there: string): never {
  throw new RelayError(
    "queue_unavailable",
    `${file} is ${there}`,
    { file, file_system: fileSystemKind(file), reason: "ENOTREG" },
    "move it away, and put back what belongs there; CLIO_RELAY_CORE_DIR names another directory for the queue",
  );
}

/** A name beside a file that nobody has: `<file>.damaged-<N>`. */
export function nameForDamaged(file: string): string {
  for (let n = 1; ; n++) {
    const name = `${file}.damaged-${n}`;
    if (whatIs(name) === null) return name;
  }
}
