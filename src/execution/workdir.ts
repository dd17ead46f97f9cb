import fs from "node:fs";
import path from "node:path";

/** The directory that a job was started in, however it was named. */
export interface WorkdirIdentity {
  /** Without symbolic links. */
  readonly path: string;
  /** Numbers of stat(2), in decimal: an inode's can be larger than a double holds. */
  readonly dev: string;
  readonly ino: string;
}

/** @throws the system's error when it is not there, or is no directory (ENOTDIR) */
export function identifyWorkdir(directory: string): WorkdirIdentity {
  const real = fs.realpathSync(directory);
  const stat = fs.statSync(real, { bigint: true });
  if (!stat.isDirectory()) throw Object.assign(new Error(`not a directory: ${directory}`), { code: "ENOTDIR" });
  const { dev, ino } = stat;
  return { path: real, dev: String(dev), ino: String(ino) };
}

/** Whether two are one directory. A file system that was mounted again meanwhile may have another device number, and only that. */
export const isSameWorkdir = (one: WorkdirIdentity, other: WorkdirIdentity): boolean =>
  one.ino === other.ino && (one.dev === other.dev || path.relative(one.path, other.path) === "");
