import fs from "node:fs";
import type { Job } from "../../domain/job.ts";
import { jobDirectory } from "../../execution/attempt-dir.ts";
import type { WorkerContext } from "./context.ts";

/** The cluster's spool, the one that compute nodes see, null where that is the same, and those that were such before. */
export type Spools = Pick<WorkerContext, "spoolDir" | "sharedSpoolDir" | "earlierSpools">;

/** A job's directory, wherever it lies. */
export function jobPlace(spools: Spools, jobId: string): string {
  const { spoolDir, sharedSpoolDir, earlierSpools } = spools;
  for (const spool of [...(sharedSpoolDir === null ? [] : [sharedSpoolDir]), ...earlierSpools]) {
    const shared = jobDirectory(spool, jobId);
    if (fs.existsSync(shared)) return shared;
  }
  return jobDirectory(spoolDir, jobId);
}

/** The same for a job that may have none yet: one that goes to a scheduler gets it where compute nodes see it. */
export function placeFor(spools: Spools, { job_id, spec }: Pick<Job, "job_id" | "spec">): string {
  const found = jobPlace(spools, job_id);
  const shared = spools.sharedSpoolDir;
  const wantsShared = "scheduler" in spec && spec.scheduler !== undefined && shared !== null;
  return wantsShared && !fs.existsSync(found) ? jobDirectory(shared, job_id) : found;
}
