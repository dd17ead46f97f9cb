import type { QueueStore } from "../../store.ts";
import type { HeldAttempts } from "../held-attempts.ts";
import { intendSubmission, openSchedulerJobs, recordSubmission, schedulerJobOf, schedulerJobs } from "../scheduler-jobs.ts";
import { observeScheduler } from "../scheduler-observation.ts";
import { settle } from "../settle.ts";
import type { Calls } from "./access.ts";

type SchedulerCalls = Pick<
  QueueStore,
  | "intendSubmission"
  | "recordSubmission"
  | "observeScheduler"
  | "retainSchedulerJob"
  | "schedulerJobs"
  | "schedulerJobOf"
  | "openSchedulerJobs"
>;

/** What the store does with jobs in allocations of a scheduler. */
export const schedulerCalls = ({ read, write }: Calls, held: HeldAttempts): SchedulerCalls => ({
  intendSubmission: (fence, intent) => write((w) => intendSubmission(w, fence, intent)),
  recordSubmission: (fence, finding) => write((w) => recordSubmission(w, fence, finding)),
  observeScheduler: (fence, status) => write((w) => observeScheduler(w, fence, status)),
  retainSchedulerJob: (fence, settlement) =>
    held.until(
      fence,
      write((w) => settle(w, fence, settlement, { retain: true })),
    ),
  schedulerJobs: (jobId, page) => read((r) => schedulerJobs(r, jobId, page)),
  schedulerJobOf: (provider, nativeId) => read((r) => schedulerJobOf(r, provider, nativeId)),
  openSchedulerJobs: () => read(openSchedulerJobs),
});
