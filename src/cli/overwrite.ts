import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../domain/errors.ts";
import { isErrno, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { readRegular } from "../lib/files/regular-file.ts";
import { noDirectory, unusable } from "./local-file.ts";
import { toggle } from "./verb.ts";

/** The option of every verb that writes a file whose name its user gave: what is there with another content is replaced only with it. */
export const OVERWRITE = { overwrite: toggle("Replace what is there with another content") } as const;

/**
 * @param others files that would be lost
 * @param option what names another place
 * @throws RelayError state_conflict where there is one
 */
export function refuseOthers(others: readonly string[], option: string): void {
  if (others.length === 0) return;
  const shown = `${others.slice(0, 5).join(", ")}${others.length > 5 ? `, and ${others.length - 5} more` : ""}`;
  const words = others.length === 1 ? "another file is there already" : "other files are there already";
  throw new RelayError("state_conflict", `${words}: ${shown}`, { paths: others.slice(0, 100) }, `${option}, or --overwrite`);
}

/** Texts that a command has made, by the path each goes to. */
export type MadeFiles = ReadonlyMap<string, string>;

/**
 * Write files that a user has named, each whole or not at all, and none where one must not be replaced.
 *
 * @param where the option as it was typed, for what is wrong
 * @param mode their permissions; 0600 when it is not said
 * @param instead what helps whoever wants to keep what is there
 * @throws RelayError state_conflict, local_file_missing, local_file_unusable
 */
export function writeMade(
  files: MadeFiles,
  {
    overwrite,
    where,
    mode,
    instead = "another --output",
  }: { readonly overwrite: boolean; readonly where: string; readonly mode?: number; readonly instead?: string },
): void {
  try {
    const others = [...files].filter(([file, text]) => holdsOther(file, text)).map(([file]) => file);
    if (!overwrite) refuseOthers(others, instead);
    for (const [file, text] of files) writeFileAtomic(file, text, mode === undefined ? {} : { mode });
  } catch (error) {
    throw isErrno(error, "ENOENT", "ENOTDIR") ? noDirectory(where, path.dirname([...files.keys()][0]!)) : unusable(where, error);
  }
}

/** Whether a file is there that would be lost: one that is neither empty nor this text. */
function holdsOther(file: string, text: string): boolean {
  if (!isOccupied(file)) return false;
  const read = readRegular(file, Buffer.byteLength(text));
  return typeof read === "string" || read.text !== text;
}

/** Whether something is there that could be lost. */
export const isOccupied = (file: string): boolean => (fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
