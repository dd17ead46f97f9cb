import { isRelayError } from "../../../domain/errors.ts";
import { hasEnded, type SchedulerJob, type SchedulerStatus } from "../../../domain/scheduler.ts";
import type { QueueStore } from "../../../queue/store.ts";
import type { SchedulerObserver } from "../../../scheduler/observer.ts";
import { OwnStatus } from "./own-status.ts";

export type StatusHeard = (status: SchedulerStatus) => void;

interface Followed {
  readonly record: SchedulerJob;
  readonly listeners: Set<StatusHeard>;
  last: SchedulerStatus | null;
  /** Whether `last` is on record, or on its way there. */
  recorded: boolean;
  stop: () => void;
}

/** The worker's submitted jobs as their schedulers see them: every change is recorded, whether an attempt waits for it or not. */
export class Following {
  readonly #followed = new Map<string, Followed>();

  constructor(
    private readonly store: Pick<QueueStore, "observeScheduler">,
    private readonly laneFailed: (where: string, error: unknown) => void,
  ) {}

  /** Follow a job and be told of it until the returned function is called. Without a listener it is followed until nothing more is to come. */
  follow(observer: SchedulerObserver, record: SchedulerJob, heard?: StatusHeard): () => void {
    const key = JSON.stringify([record.provider, record.scheduler_cluster, record.native_id]);
    const followed = this.#followed.get(key) ?? this.#begin(observer, record, key);
    if (heard === undefined) return () => undefined;
    followed.listeners.add(heard);
    if (followed.last !== null) heard(followed.last);
    return () => {
      followed.listeners.delete(heard);
      this.#release(key, followed);
    };
  }

  close(): void {
    for (const { stop } of this.#followed.values()) stop();
    this.#followed.clear();
  }

  #begin(observer: SchedulerObserver, record: SchedulerJob, key: string): Followed {
    const followed: Followed = { record, listeners: new Set(), last: null, recorded: false, stop: () => undefined };
    this.#followed.set(key, followed);
    const native = { id: record.native_id ?? "", cluster: record.scheduler_cluster };
    const own = new OwnStatus(record);
    followed.stop = observer.watch(native, (said, changed) => {
      if (this.#followed.get(key) !== followed) return;
      const status = own.of(said);
      followed.last = status;
      if (changed) followed.recorded = false;
      if (!followed.recorded) this.#record(followed, status);
      for (const heard of followed.listeners) heard(status);
      this.#release(key, followed);
    });
    return followed;
  }

  #record(followed: Followed, status: SchedulerStatus): void {
    const { job_id, attempt, provider, native_id } = followed.record;
    followed.recorded = true;
    this.store.observeScheduler({ job_id, attempt }, status).catch((error: unknown) => {
      if (isRelayError(error, "attempt_fenced") || isRelayError(error, "shutting_down")) return;
      // The next answer is recorded, whatever it says.
      followed.recorded = false;
      this.laneFailed(`record of what ${provider} says of ${native_id}`, error);
    });
  }

  /** Let go of one that nobody waits for and of which nothing more is to come. */
  #release(key: string, followed: Followed): void {
    const { listeners, last, stop } = followed;
    if (listeners.size > 0 || last === null || !(hasEnded(last.phase) || last.record_found === false)) return;
    stop();
    this.#followed.delete(key);
  }
}
