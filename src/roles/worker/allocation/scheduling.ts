import type { SchedulerChoice, SchedulerName } from "../../../domain/scheduler.ts";
import { handedOnEnvironment } from "../../../execution/environment.ts";
import { systemTimers } from "../../../lib/waiting/timers.ts";
import type { SchedulerProvider } from "../../../scheduler/provider.ts";
import { schedulerProvider } from "../../../scheduler/schedulers.ts";
import { runSiteCommand, siteEnvironment } from "../../../scheduler/site-command.ts";
import { environmentBehind } from "../../../scheduler/site-setup.ts";
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
  /** Shell text that comes before every job of the cluster, and says where its scheduler is, too; null for none. */
  readonly envSetup: string | null;
  readonly coreDir: string;
}

/** The schedulers of a worker. */
export function schedulersOf(
  { scheduling, environment: variables, envSetup, coreDir }: ForSchedulers,
  around: Pick<SchedulersOptions, "store" | "clock" | "laneFailed">,
): Schedulers {
  const environment = siteEnvironment(variables);
  const setUp = async (): Promise<boolean> => {
    if (envSetup === null) return true;
    const found = await environmentBehind(envSetup, handedOnEnvironment(variables), runSiteCommand);
    if (typeof found !== "string") Object.assign(environment, found);
    else around.laneFailed("scheduler", new Error(`the cluster's setup text does not tell where the scheduler is: it ${found}`));
    return typeof found !== "string";
  };
  return new Schedulers({
    clock: around.clock,
    timers: systemTimers,
    ...scheduling?.observing,
    store: around.store,
    coreDir,
    laneFailed: around.laneFailed,
    choice: scheduling?.choice ?? "external",
    setUp,
    provide: scheduling?.provide ?? ((name) => schedulerProvider(name, { variables, environment, clock: around.clock })),
    ...(scheduling?.times === undefined ? {} : { times: scheduling.times }),
  });
}
