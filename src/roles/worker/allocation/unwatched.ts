import { hasEnded, type SchedulerJob } from "../../../domain/scheduler.ts";
import { voidAttempt } from "../../../execution/attempt-dir.ts";
import type { Schedulers } from "./schedulers.ts";

/**
 * Whether an attempt that nobody watches, since its job's record cannot be read, may still run in its allocation, or start there.
 *
 * @param end whether the scheduler's job is to be ended, too
 */
export async function mayRunAtScheduler(schedulers: Schedulers, record: SchedulerJob, directory: string, end: boolean): Promise<boolean> {
  // Nobody knows whether it is there: it is not to start any more.
  if (record.submission !== "submitted") return record.submission !== "refused" && !voidAttempt(directory, "its record cannot be read");
  const { phase } = await schedulers.statusOf(record);
  if (hasEnded(phase)) return false;
  if (end) await schedulers.cancel(record);
  return true;
}
