import fs from "node:fs";
import path from "node:path";
import { writeFileAtomic } from "../../../lib/files/atomic-file.ts";
import { readSmallFile } from "../../../lib/files/regular-file.ts";

/** Beside the queue: paths of executables that batch scripts name, one a line. What installs and removes versions keeps these (transport/script/layout.sh). */
const NAME = "batch-executables";
const MAX_BYTES = 256 * 1024;

const fileIn = (coreDir: string): string => path.join(coreDir, NAME);

/** Have an executable kept for batch scripts that a scheduler may run at any time from now on. */
export function keepExecutable(coreDir: string, executable: string): void {
  const file = fileIn(coreDir);
  const lines = (readSmallFile(file, MAX_BYTES) ?? "").split("\n").filter((line) => line !== "");
  if (!lines.includes(executable)) writeFileAtomic(file, `${[...lines, executable].join("\n")}\n`);
}

/** Nothing is at a scheduler any more. */
export const releaseExecutables = (coreDir: string): void => fs.rmSync(fileIn(coreDir), { force: true });
