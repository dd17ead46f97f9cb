import type { SchedulerChoice, SchedulerName } from "../../../domain/scheduler.ts";
import { systemTimers } from "../../../lib/timers.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";
import { schedulerProvider } from "../../../scheduler/schedulers.ts";
import { Schedulers, type SchedulersOptions } from "./schedulers.ts";
import type { AllocationTimes } from "./times.ts";

/** What a worker is told of its cluster's scheduler. */
export interface Scheduling {
  readonly choice: SchedulerChoice;
  /** Stands in for the providers that there are. */
  readonly provide?: (name: SchedulerName) => SchedulerProvider;
  readonly times?: Partial<AllocationTimes>;
  /** The time by which schedulers are asked. */
  readonly observing?: Pick<SchedulersOptions, "clock" | "timers">;
}

/** Of a worker's options. */
interface ForSchedulers {
  readonly scheduling?: Scheduling;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly coreDir: string;
}

/** The schedulers of a worker. */
export const schedulersOf = (
  { scheduling, environment, coreDir }: ForSchedulers,
  around: Pick<SchedulersOptions, "store" | "clock" | "laneFailed">,
): Schedulers =>
  new Schedulers({
    clock: around.clock,
    timers: systemTimers,
    ...scheduling?.observing,
    store: around.store,
    coreDir,
    laneFailed: around.laneFailed,
    choice: scheduling?.choice ?? "external",
    provide: scheduling?.provide ?? ((name) => schedulerProvider(name, { variables: environment, clock: around.clock })),
    ...(scheduling?.times === undefined ? {} : { times: scheduling.times }),
  });
