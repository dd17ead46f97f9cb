import path from "node:path";
import { HeldDirectory } from "../../lib/files/held-directory.ts";

/** Hold an attempt's directory; null where that cannot be done: an attempt without one of its own cannot be claimed, and there is nowhere to say so. */
export function heldAttempt(directory: string): HeldDirectory | null {
  try {
    const jobDir = path.dirname(directory);
    return new HeldDirectory(path.dirname(jobDir), path.basename(jobDir), path.basename(directory));
  } catch {
    return null;
  }
}
