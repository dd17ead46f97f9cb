import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import type { CliIo } from "../io.ts";
import { noDirectory, unusable } from "../local-file.ts";
import { resolveLocal } from "../local-path.ts";
import { replaceable } from "./fetched-file.ts";

/**
 * The file that -o means: the one named, or one with the last part of `name` in the directory that is named.
 *
 * @throws RelayError usage, local_file_missing, local_file_unusable
 */
export function targetFile(io: CliIo, typed: string, name: string): string {
  try {
    return targetOf(io, typed, name);
  } catch (error) {
    throw unusable(`-o ${typed}`, error);
  }
}

const directoryAt = (file: string): boolean => fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;

function targetOf(io: CliIo, typed: string, whole: string): string {
  const given = resolveLocal(io, typed);
  const isDirectory = directoryAt(given);
  if (!isDirectory) {
    if (typed.endsWith("/")) throw new RelayError("local_file_unusable", `-o ${typed}: that is not a directory`);
    if (!directoryAt(path.dirname(given))) {
      throw noDirectory(`-o ${typed}`, path.dirname(typed));
    }
    return replaceable(given, typed);
  }
  const name = path.posix.basename(whole);
  if (name === "" || name === "." || name === ".." || name.includes("\0")) {
    throw new RelayError("usage", `${JSON.stringify(whole)} is no name for a file`, {}, "name the file with -o FILE");
  }
  return replaceable(path.join(given, name), typed);
}
