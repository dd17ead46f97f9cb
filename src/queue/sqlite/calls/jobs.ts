import type { QueueStore } from "../../store.ts";
import { requestCancel } from "../cancel.ts";
import { stats } from "../leases.ts";
import { job, jobsAhead, queueWindow, recentJobs } from "../listing.ts";
import { quarantine } from "../quarantine.ts";
import { prepareSubmission, submit, submitted } from "../submit.ts";
import { endUnreadable, unreadable } from "../unreadable.ts";
import type { Calls } from "./access.ts";

type JobCalls = Pick<
  QueueStore,
  | "submit"
  | "submitted"
  | "job"
  | "recentJobs"
  | "queueWindow"
  | "jobsAhead"
  | "stats"
  | "requestCancel"
  | "unreadable"
  | "endUnreadable"
  | "quarantine"
>;

/** What the store does with jobs as a whole. */
export const jobCalls = ({ read, write }: Calls, activeJobsMax: number, consumersMax?: number): JobCalls => ({
  async submit(submission, lane, trace = null) {
    const prepared = prepareSubmission(submission, lane, trace);
    return write((w) => submit(w, prepared, activeJobsMax, consumersMax), { answersFirst: true });
  },
  submitted: (submission) => read((r) => submitted(r, submission)),
  job: (jobId) => read((r) => job(r, jobId)),
  recentJobs: (filter, before, limit) => read((r) => recentJobs(r, filter, before, limit)),
  queueWindow: (filter, page, scanLimit) => read((r) => queueWindow(r, filter, page, scanLimit)),
  jobsAhead: (jobId) => read((r) => jobsAhead(r, jobId)),
  stats: () => read(stats),
  requestCancel: (jobId, wish) => write((w) => requestCancel(w, jobId, wish)),
  unreadable: (jobId) => read((r) => unreadable(r, jobId)),
  endUnreadable: (jobId, as, message) => write((w) => endUnreadable(w, jobId, as, message)),
  quarantine: (jobId, reason) => write((w) => quarantine(w, jobId, reason)),
});
