import { spawnSync } from "node:child_process";
import fs from "node:fs";

/** Remove a directory with all it holds, also directories that cannot be written to, as those of inputs. */
export function removeTree(directory: string): void {
  // Who is root may anyway.
  if (process.getuid?.() !== 0 && fs.existsSync(directory)) spawnSync("chmod", ["-R", "u+w", directory]);
  fs.rmSync(directory, { recursive: true, force: true });
}
