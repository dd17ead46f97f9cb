import type { SchedulerName, SchedulerStatus } from "../domain/scheduler.ts";

/** What is known of a job before a source has said anything: nothing. */
export function blankStatus(scheduler: SchedulerName, id: string, cluster: string | null, observedAt: string): SchedulerStatus {
  return {
    scheduler,
    scheduler_job_id: id,
    cluster,
    phase: "unknown",
    record_found: null,
    active_record_found: null,
    raw_state: null,
    reason: null,
    name: null,
    partition: null,
    qos: null,
    account: null,
    user: null,
    nodes: null,
    cpus: null,
    memory: null,
    exit_code: null,
    signal: null,
    submit_time: null,
    eligible_time: null,
    start_time: null,
    end_time: null,
    elapsed_seconds: null,
    time_limit_seconds: null,
    queue_position: null,
    jobs_ahead: null,
    queue_position_scope: null,
    queue_position_note: null,
    observed_at: observedAt,
  };
}

/** Longest text of a scheduler's that is kept; what is longer is cut. */
const WORDS_MAX = 1_024;

/** A scheduler's word; null for none, and for those that say so. */
export function words(text: string | undefined, none: readonly string[] = []): string | null {
  const word = text?.trim() ?? "";
  if (word === "" || none.includes(word)) return null;
  return word.length <= WORDS_MAX ? word : `${word.slice(0, WORDS_MAX - 1)}…`;
}

/** A whole number that is not negative; null for anything else. */
export function count(text: string | undefined): number | null {
  if (text === undefined || !/^\d{1,15}$/.test(text.trim())) return null;
  return Number(text);
}

/** A status with what a source says put over what was there; what it does not know stays. */
export function withAnswers(status: SchedulerStatus, answers: Partial<SchedulerStatus>): SchedulerStatus {
  const known = Object.entries(answers).filter(([, value]) => value !== null && value !== undefined);
  return { ...status, ...Object.fromEntries(known) };
}
