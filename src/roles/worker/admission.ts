import fs from "node:fs";
import { RelayError } from "../../domain/errors.ts";

/**
 * Refuse when one of the directories' file systems has fewer than `minFreeBytes` left for this user.
 *
 * @throws RelayError storage_admission_refused, with `storage_decision`
 */
export async function admitByFreeSpace(directories: Readonly<Record<string, string>>, minFreeBytes: number): Promise<void> {
  for (const [name, directory] of Object.entries(directories)) {
    const { bavail, bsize } = fs.statfsSync(directory);
    const free = bavail * bsize;
    if (free >= minFreeBytes) continue;
    throw new RelayError(
      "storage_admission_refused",
      `${directory} has ${free} bytes left; ${minFreeBytes} must stay free`,
      {
        storage_decision: {
          allowed: false,
          reason: "filesystem_free_reserve",
          directory: name,
          free_bytes: free,
          min_free_bytes: minFreeBytes,
        },
      },
      "free some space, or lower CLIO_RELAY_MIN_FREE_BYTES",
    );
  }
}
