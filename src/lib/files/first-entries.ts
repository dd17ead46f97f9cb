import fs from "node:fs";
import { closeDirectory, nextEntry, openDirectory } from "../system/libc.ts";

/** Names in a directory, as the file system gives them, and whether there are more. */
export interface FirstEntries {
  readonly names: readonly string[];
  readonly more: boolean;
}

/**
 * The first names in a directory, so that one with a million of them costs no more to look at than `max`. fs.opendirSync reads all of
 * them before it gives the first. Only on Linux the rest is really left unread.
 *
 * @throws the system's error when the directory cannot be opened
 */
export function firstEntries(directory: string, max: number): FirstEntries {
  if (process.platform !== "linux") {
    const names = fs.readdirSync(directory);
    return { names: names.slice(0, max), more: names.length > max };
  }
  const stream = openDirectory(fs.openSync(directory, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY));
  try {
    const names: string[] = [];
    for (let name = nextEntry(stream); name !== null; name = nextEntry(stream)) {
      if (name === "." || name === "..") continue;
      if (names.length >= max) return { names, more: true };
      names.push(name);
    }
    return { names, more: false };
  } finally {
    closeDirectory(stream);
  }
}
