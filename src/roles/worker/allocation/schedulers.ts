import type { SchedulerServices } from "../../../api/scheduler-services.ts";
import { isRelayError, RelayError } from "../../../domain/errors.ts";
import { SCHEDULERS, type SchedulerJob, type SchedulerName } from "../../../domain/scheduler.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Timers } from "../../../lib/timers.ts";
import type { QueueStore } from "../../../queue/store.ts";
import { SchedulerObserver } from "../../../scheduler/observer.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";
import { Following, type StatusHeard } from "./following.ts";
import { ALLOCATION_TIMES, type AllocationTimes } from "./times.ts";

/** Which scheduler a cluster has, as it is configured: none of ours, whichever is found, or this one. */
export type SchedulerChoice = SchedulerName | "external" | "auto";

export interface SchedulersOptions {
  readonly choice: SchedulerChoice;
  readonly provide: (name: SchedulerName) => SchedulerProvider;
  readonly store: QueueStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly laneFailed: (where: string, error: unknown) => void;
  readonly times?: Partial<AllocationTimes>;
}

interface Found {
  readonly provider: SchedulerProvider;
  readonly observer: SchedulerObserver;
}

/** How long it counts that no scheduler was found. */
const ABSENT_MS = 30_000;

/** The schedulers of a worker, and what it has submitted to them. */
export class Schedulers implements SchedulerServices {
  readonly times: AllocationTimes;
  readonly #found = new Map<SchedulerName, Found>();
  readonly #following: Following;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: SchedulersOptions) {
    this.times = { ...ALLOCATION_TIMES, ...options.times };
    this.#following = new Following(options.store, options.laneFailed);
  }

  /** Find out which there are, and go on with what earlier workers have submitted. */
  async start(): Promise<void> {
    await this.#discover();
    for (const record of await this.options.store.openSchedulerJobs()) {
      if (record.native_id === null) continue;
      try {
        const { observer } = await this.#probed(record.provider);
        this.#following.follow(observer, record);
      } catch (error) {
        this.options.laneFailed(`observation of ${record.provider} ${record.native_id}`, error);
      }
    }
  }

  async stop(): Promise<void> {
    this.#following.close();
    await Promise.all([...this.#found.values()].map(({ observer }) => observer.stop()));
  }

  providers(): readonly SchedulerName[] {
    const names = this.#configured().filter((name) => this.#found.has(name));
    if (names.length === 0) void this.#discover();
    return names;
  }

  /**
   * The provider that a request means; null is the cluster's.
   *
   * @throws RelayError scheduler_unavailable where the cluster has no such one, or its commands are not there
   */
  async provider(name: SchedulerName | null): Promise<SchedulerProvider> {
    const configured = this.#configured();
    if (configured.length === 0) throw new RelayError("scheduler_unavailable", "this cluster is configured without a scheduler");
    if (name !== null && !configured.includes(name))
      throw new RelayError("scheduler_unavailable", `this cluster is configured without ${name}`);
    const missing: string[] = [];
    for (const each of name === null ? configured : [name]) {
      try {
        return (await this.#probed(each)).provider;
      } catch (error) {
        if (!isRelayError(error, "scheduler_unavailable")) throw error;
        missing.push(error.message);
      }
    }
    throw new RelayError("scheduler_unavailable", missing.join("; "));
  }

  /** The provider of what is on record, whatever is configured by now. */
  async providerOf({ provider }: Pick<SchedulerJob, "provider">): Promise<SchedulerProvider> {
    return (await this.#probed(provider)).provider;
  }

  /**
   * Have what the scheduler says of a submitted job recorded, and be told of it, until the returned function is called. It goes on being recorded afterwards
   * until the job has ended, or no source knows it any more.
   */
  async follow(record: SchedulerJob, heard: StatusHeard): Promise<() => void> {
    return this.#following.follow((await this.#probed(record.provider)).observer, record, heard);
  }

  async observe(name: SchedulerName | null, id: string) {
    const provider = await this.provider(name);
    const native = provider.native(id);
    if (native === null) throw new RelayError("request_validation_failed", `${id} is no job id of ${provider.name}`);
    const { observer } = await this.#probed(provider.name);
    const status = await observer.once(native);
    if (status.record_found !== null || status.phase !== "unknown") return status;
    const said = [...observer.failures()].map(([source, words]) => `${source}: ${words}`).join("; ");
    throw new RelayError(
      "scheduler_failed",
      `no source of ${provider.name} has said anything of ${id}${said === "" ? "" : ` (${said})`}`.slice(0, 2_000),
    );
  }

  async cancel({ provider, native_id, scheduler_cluster, marker }: SchedulerJob) {
    if (native_id === null) return { kind: "refused", said: "nobody knows its id" } as const;
    return (await this.providerOf({ provider })).cancel({ id: native_id, cluster: scheduler_cluster }, marker);
  }

  #configured(): readonly SchedulerName[] {
    const { choice } = this.options;
    if (choice === "external") return [];
    return choice === "auto" ? SCHEDULERS : [choice];
  }

  async #discover(): Promise<void> {
    const now = this.options.clock.monotonic();
    if (now - this.#lookedAt < ABSENT_MS) return;
    this.#lookedAt = now;
    for (const name of this.#configured()) {
      await this.#probed(name).catch((error: unknown) => {
        // Of one that is named it is news that it is not there.
        if (this.options.choice !== "auto" || !isRelayError(error, "scheduler_unavailable"))
          this.options.laneFailed(`scheduler ${name}`, error);
      });
    }
  }

  async #probed(name: SchedulerName): Promise<Found> {
    const known = this.#found.get(name);
    if (known !== undefined) return known;
    const { provide, clock, timers, laneFailed } = this.options;
    const provider = provide(name);
    await provider.probe();
    // Whoever was asked first stays.
    const first = this.#found.get(name);
    if (first !== undefined) return first;
    const observer = new SchedulerObserver({ provider, clock, timers, onTrouble: laneFailed });
    observer.start();
    const found = { provider, observer };
    this.#found.set(name, found);
    return found;
  }
}
