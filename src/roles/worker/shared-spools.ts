import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { writeFileAtomic } from "../../lib/atomic-file.ts";
import { readSmallFile } from "../../lib/regular-file.ts";
import type { QueueStore } from "../../queue/store.ts";

/** Beside the queue: shared spools that jobs of it may lie in, one a line, the newest first. */
const FILE = "shared-spools";
const MAX_BYTES = 64 * 1024;
const KEPT = 16;

/**
 * Remember the shared spool that new jobs get, and say which ones earlier jobs may lie in.
 *
 * @throws RelayError configuration_error where one of these is not there, while something may still go on at a scheduler: what lies in there says whether it runs
 */
export async function earlierSpools(
  coreDir: string,
  current: string | null,
  store: Pick<QueueStore, "openSchedulerJobs">,
): Promise<readonly string[]> {
  const file = path.join(coreDir, FILE);
  const known = (readSmallFile(file, MAX_BYTES) ?? "").split("\n").filter((line) => path.isAbsolute(line));
  const earlier = known.filter((one) => one !== current);
  const missing = earlier.find((one) => !fs.existsSync(one));
  if (missing !== undefined) {
    const open = await store.openSchedulerJobs();
    if (open.length > 0)
      throw new RelayError(
        "configuration_error",
        `${missing}, where jobs of the scheduler write, is not there; whether they run cannot be told without it`,
        { path: missing, job_ids: open.slice(0, 10).map(({ job_id }) => job_id) },
        "CLIO_RELAY_SHARED_SPOOL_DIR may name another directory once that one is there, too",
      );
  }
  const all = [...(current === null ? [] : [current]), ...earlier].slice(0, KEPT);
  if (all.join("\n") !== known.join("\n")) writeFileAtomic(file, all.map((one) => `${one}\n`).join(""));
  return earlier;
}
