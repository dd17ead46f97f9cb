import type { SchedulerJob, SchedulerName, SchedulerRequest, SchedulerStatus } from "../domain/scheduler.ts";

/** What became of asking a scheduler for the end of a job. `doubt`: nobody can tell whether it was asked. */
export interface SchedulerCancelAnswer {
  readonly kind: "asked" | "refused" | "doubt";
  /** In the scheduler's own words. */
  readonly said: string;
}

/** The schedulers of this worker's cluster. Without one, no job can ask for one. */
export interface SchedulerServices {
  /** Those that there are, the cluster's own first. */
  providers(): readonly SchedulerName[];
  /**
   * Refuse what no such scheduler takes as one job: options that are the relay's, arrays, directives that cannot be read.
   *
   * @throws RelayError job_submission_refused
   */
  check(request: SchedulerRequest, script: string | null): void;
  /**
   * What a scheduler says of any of its jobs, at most 5 s old.
   *
   * @param provider null: the cluster's own
   * @throws RelayError scheduler_unavailable where there is none of that name, scheduler_failed where no source answers
   */
  observe(provider: SchedulerName | null, id: string): Promise<SchedulerStatus>;
  /** Ask for the end of exactly this job, after it was seen that its id still has its marker for a name. For a job that was left to go on. */
  cancel(job: SchedulerJob): Promise<SchedulerCancelAnswer>;
}
