import { hasEnded, type SchedulerJob, type SchedulerStatus } from "../../../domain/scheduler.ts";
import { blankStatus } from "../../../scheduler/status.ts";

/** What clocks of several hosts differ by at most. */
const CLOCKS_MS = 3_600_000;

/** A scheduler's answers about the number of a job of ours, as what they say of that job. */
export class OwnStatus {
  /** When it was submitted, by the scheduler's own clock: what it said while the job had our name. */
  #submitted: string | null = null;
  /** The scheduler's word on its end. */
  #ended: SchedulerStatus | null = null;

  /** @param record as earlier workers have left it */
  constructor(private readonly record: SchedulerJob) {
    if (record.status !== null) this.#learn(record.status);
  }

  /**
   * A job that has ended stays so until the scheduler has it as active again: those without accounts forget it, and accounts may be late. Numbers are given again
   * once a controller has lost its state: of ours an answer about another's job says only that it is not there.
   */
  of(said: SchedulerStatus): SchedulerStatus {
    const { provider, native_id, scheduler_cluster } = this.record;
    const status: SchedulerStatus = this.#isAnothers(said)
      ? { ...blankStatus(provider, native_id ?? "", scheduler_cluster, said.observed_at), record_found: false, active_record_found: false }
      : said;
    this.#learn(status);
    return this.#ended === null ? status : { ...this.#ended, observed_at: status.observed_at };
  }

  #learn(status: SchedulerStatus): void {
    if (status.name === this.record.marker) this.#submitted ??= status.submit_time;
    if (hasEnded(status.phase)) this.#ended = status;
    else if (status.active_record_found === true) this.#ended = null;
  }

  /** Whether it has another name, and not because somebody has renamed it. */
  #isAnothers({ name, submit_time }: SchedulerStatus): boolean {
    if (name === null || name === this.record.marker || submit_time === null) return false;
    if (this.#submitted !== null) return submit_time !== this.#submitted;
    const { submitted_at } = this.record;
    return submitted_at !== null && Date.parse(submit_time) - Date.parse(submitted_at) > CLOCKS_MS;
  }
}
