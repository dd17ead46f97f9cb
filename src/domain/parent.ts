import type { Metadata } from "./primitives.ts";

/** Member of a job's metadata: the job in which it was submitted. */
export const PARENT = "parent_job_id";

const JOB_ID = /^job_[0-9a-f]{32}$/;

/** The job in which this one was submitted; null for none. */
export function parentOf({ metadata }: { readonly metadata?: Metadata }): string | null {
  const parent = metadata?.[PARENT];
  return typeof parent === "string" && JOB_ID.test(parent) ? parent : null;
}
