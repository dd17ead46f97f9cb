import fs from "node:fs";
import path from "node:path";
import type { UploadKey } from "../domain/input.ts";
import { isErrno, makePrivateDirectory } from "../lib/files/atomic-file.ts";
import { HeldDirectory } from "../lib/files/held-directory.ts";

/*
 * Where inputs lie below a cluster's spool; docs/staging.md. A job can put a link in the place of any of it, so each directory is opened step by step and
 * nothing is done by a name that leads further than one directory.
 */

const INPUTS = "inputs";
/** Name of the bytes; no input can be called so, since its name begins with a letter or digit. */
export const CONTENT_NAME = ".content";

/** The path of an input, for jobs. */
export const inputPath = (spoolDir: string, sha256: string, logicalName: string): string =>
  path.join(spoolDir, INPUTS, sha256, logicalName);

/** Where an input lies below the spool. */
export const inputBelowSpool = (place: string): string => `${INPUTS}/${place}`;

/** Hold the directory of all inputs; it is made where there is none. */
export function holdInputs(spoolDir: string): HeldDirectory {
  try {
    return new HeldDirectory(spoolDir, INPUTS);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
  makePrivateDirectory(path.join(spoolDir, INPUTS));
  return new HeldDirectory(spoolDir, INPUTS);
}

/** Hold the directory of one content; null where there is none. */
export function holdContent(spoolDir: string, sha256: string): HeldDirectory | null {
  try {
    return new HeldDirectory(spoolDir, INPUTS, sha256);
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return null;
    throw error;
  }
}

/** The name of a part; its length is how far the upload has come. */
export const partName = ({ sha256, size_bytes, provisional }: UploadKey): string =>
  `${sha256}-${size_bytes}.${provisional ? "provisional" : "part"}`;

const PART = /^([0-9a-f]{64})-(\d{1,16})\.(part|provisional)$/;
const DIGEST = /^[0-9a-f]{64}$/;

/** A part or a content of the directory, and when somebody last had to do with it, in milliseconds since 1970. */
export interface InputEntry {
  readonly name: string;
  readonly kind: "part" | "content";
  /** Of a content whose bytes are not there the size is 0. */
  readonly key: UploadKey;
  readonly usedAt: number;
}

/** When somebody last had to do with an entry, in milliseconds since 1970; null where it is gone. */
export function lastUse(spoolDir: string, name: string): number | null {
  using place = holdInputs(spoolDir);
  return fs.lstatSync(path.join(place.path, name), { throwIfNoEntry: false })?.mtimeMs ?? null;
}

/** Everything that lies there. What has another name was put there by somebody else, and stays. */
export function listInputs(spoolDir: string): InputEntry[] {
  using place = holdInputs(spoolDir);
  const entries: InputEntry[] = [];
  for (const name of fs.readdirSync(place.path)) {
    const stat = fs.lstatSync(path.join(place.path, name), { throwIfNoEntry: false });
    const part = PART.exec(name);
    if (part !== null && stat?.isFile()) {
      const key: UploadKey = { sha256: part[1]!, size_bytes: Number(part[2]), ...(part[3] === "provisional" ? { provisional: true } : {}) };
      entries.push({ name, kind: "part", key, usedAt: stat.mtimeMs });
    } else if (DIGEST.test(name) && stat?.isDirectory()) {
      const { size = 0 } = fs.lstatSync(path.join(place.path, name, CONTENT_NAME), { throwIfNoEntry: false }) ?? {};
      entries.push({ name, kind: "content", key: { sha256: name, size_bytes: size }, usedAt: stat.mtimeMs });
    }
  }
  return entries;
}
