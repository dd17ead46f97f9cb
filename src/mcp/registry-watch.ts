import fs from "node:fs";
import { watchValue } from "../lib/watched-value.ts";

/** How often the registry's file is looked at, in milliseconds. */
const LOOK_MS = 2_000;

/** Call `changed` when the registry of clusters is another, since each cluster is a value that tools take. Returns how to stop. */
export function registryWatch(file: string, changed: () => void): () => void {
  const seen = (): string => {
    const stat = fs.statSync(file, { throwIfNoEntry: false });
    return stat === undefined ? "" : `${stat.ino} ${stat.mtimeMs} ${stat.size}`;
  };
  return watchValue(seen, changed, LOOK_MS);
}
