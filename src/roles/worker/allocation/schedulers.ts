import type { SchedulerServices } from "../../../api/scheduler-services.ts";
import { isRelayError, RelayError } from "../../../domain/errors.ts";
import {
  SCHEDULERS,
  type SchedulerChoice,
  type SchedulerJob,
  type SchedulerName,
  type SchedulerRequest,
} from "../../../domain/scheduler.ts";
import type { Clock } from "../../../lib/waiting/clock.ts";
import type { Timers } from "../../../lib/waiting/timers.ts";
import { Turns } from "../../../lib/waiting/turns.ts";
import { within } from "../../../lib/waiting/within.ts";
import type { QueueStore } from "../../../queue/store.ts";
import { SchedulerObserver } from "../../../scheduler/observer.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";
import { releaseExecutables } from "./executables.ts";
import { Following, type StatusHeard } from "./following.ts";
import { inTurn } from "./in-turn.ts";
import { SubmitTurns } from "./submit-turns.ts";
import { ALLOCATION_TIMES, type AllocationTimes } from "./times.ts";

export interface SchedulersOptions {
  readonly choice: SchedulerChoice;
  /** Find out what the providers' commands need; asked once, and again while that is false. */
  readonly setUp?: () => Promise<boolean>;
  readonly provide: (name: SchedulerName) => SchedulerProvider;
  readonly store: QueueStore;
  readonly coreDir: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly laneFailed: (where: string, error: unknown) => void;
  readonly times?: Partial<AllocationTimes>;
}

interface Parts {
  readonly provider: SchedulerProvider;
  readonly observer: SchedulerObserver;
}

/** How long a starting worker waits to know what the site has; it goes on asking. */
const DISCOVERY_MS = 2_000;
/** How many commands of a kind are run at a time. */
const AT_ONCE = 4;
/** How long it counts that no scheduler was found. */
const ABSENT_MS = 30_000;

/** The schedulers of a worker, and what it has submitted to them. */
export class Schedulers implements SchedulerServices {
  readonly times: AllocationTimes;
  readonly submitTurns = new SubmitTurns(AT_ONCE);
  readonly #turns = new Turns(AT_ONCE);
  readonly #parts = new Map<SchedulerName, Parts>();
  /** Whether a scheduler's commands are there, as far as that is known. */
  readonly #present = new Map<SchedulerName, boolean>();
  readonly #following: Following;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isSetUp: Promise<boolean> | null = null;

  constructor(private readonly options: SchedulersOptions) {
    this.times = { ...ALLOCATION_TIMES, ...options.times };
    this.#following = new Following(options.store, options.laneFailed);
  }

  /** Go on with what earlier workers have submitted, and find out which schedulers there are. */
  async start(): Promise<void> {
    const open = await this.options.store.openSchedulerJobs();
    if (open.length === 0) releaseExecutables(this.options.coreDir);
    for (const record of open) {
      if (record.native_id !== null) this.#following.follow(this.#of(record.provider).observer, record);
    }
    await within(this.#discover(), DISCOVERY_MS);
  }

  async stop(): Promise<void> {
    this.#following.close();
    await Promise.all([...this.#parts.values()].map(({ observer }) => observer.stop()));
  }

  providers(): readonly SchedulerName[] {
    const { choice } = this.options;
    // One that is named counts until it is known not to be there.
    const names = this.#configured().filter((name) => this.#present.get(name) ?? choice !== "auto");
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
        if (this.#present.get(each) !== true) await this.#probe(each);
        return this.providerOf({ provider: each });
      } catch (error) {
        if (!isRelayError(error, "scheduler_unavailable")) throw error;
        missing.push(error.message);
      }
    }
    throw new RelayError("scheduler_unavailable", missing.join("; "));
  }

  /** See SchedulerServices. Asks nobody: what a site does not have, its scheduler says itself. */
  check(request: SchedulerRequest, script: string | null): void {
    const name = request.provider ?? this.providers()[0];
    if (name !== undefined) this.#of(name).provider.script(request, script, []);
  }

  /** The provider of what is on record, whatever is configured by now. */
  providerOf({ provider }: Pick<SchedulerJob, "provider">): SchedulerProvider {
    return this.#of(provider).provider;
  }

  /**
   * Have what the scheduler says of a submitted job recorded, and be told of it, until the returned function is called. It goes on being recorded afterwards
   * until the job has ended, or no source knows it any more.
   */
  follow(record: SchedulerJob, heard: StatusHeard): () => void {
    return this.#following.follow(this.#of(record.provider).observer, record, heard);
  }

  async observe(name: SchedulerName | null, id: string) {
    const provider = await this.provider(name);
    const native = provider.native(id);
    if (native === null) throw new RelayError("request_validation_failed", `${id} is no job id of ${provider.name}`);
    const { observer } = this.#of(provider.name);
    const status = await observer.once(native);
    if (status.record_found !== null || status.phase !== "unknown") return status;
    const said = [...observer.failures()].map(([source, words]) => `${source}: ${words}`).join("; ");
    throw new RelayError(
      "scheduler_failed",
      `no source of ${provider.name} has said anything of ${id}${said === "" ? "" : ` (${said})`}`.slice(0, 2_000),
    );
  }

  /** What the scheduler says of what is on record, at most some seconds old. */
  statusOf({ provider, native_id, scheduler_cluster }: SchedulerJob) {
    return this.#of(provider).observer.once({ id: native_id ?? "", cluster: scheduler_cluster });
  }

  async cancel({ provider, native_id, scheduler_cluster, marker }: SchedulerJob) {
    if (native_id === null) return { kind: "refused", said: "nobody knows its id" } as const;
    return this.providerOf({ provider }).cancel({ id: native_id, cluster: scheduler_cluster }, marker);
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
      await this.#probe(name).catch((error: unknown) => {
        // Of one that is named it is news that it is not there.
        if (this.options.choice !== "auto" || !isRelayError(error, "scheduler_unavailable"))
          this.options.laneFailed(`scheduler ${name}`, error);
      });
    }
  }

  /** @throws RelayError scheduler_unavailable */
  async #probe(name: SchedulerName): Promise<void> {
    this.#isSetUp ??= this.options.setUp?.() ?? Promise.resolve(true);
    if (!(await this.#isSetUp)) this.#isSetUp = null;
    try {
      await this.#of(name).provider.probe();
      this.#present.set(name, true);
    } catch (error) {
      this.#present.set(name, false);
      throw error;
    }
  }

  #of(name: SchedulerName): Parts {
    let parts = this.#parts.get(name);
    if (parts === undefined) {
      const { provide, clock, timers, laneFailed } = this.options;
      const provider = inTurn(provide(name), this.#turns);
      const observer = new SchedulerObserver({ provider, clock, timers, onTrouble: laneFailed });
      observer.start();
      parts = { provider, observer };
      this.#parts.set(name, parts);
    }
    return parts;
  }
}
