import type { SchedulerName } from "../domain/scheduler.ts";
import { type Clock, systemClock } from "../lib/waiting/clock.ts";
import { GridEngineProvider } from "./gridengine/provider.ts";
import type { SchedulerProvider } from "./provider.ts";
import { type RunSiteCommand, runSiteCommand, siteEnvironment } from "./site-command.ts";
import { SlurmProvider } from "./slurm/provider.ts";

export interface SchedulerOptions {
  /** The worker's variables; a site's commands get those of them that they need. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** What a site's commands get, in place of that; it may change. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly run?: RunSiteCommand;
}

/** The provider of a scheduler. Whether the site has it, `probe` says. */
export function schedulerProvider(
  name: SchedulerName,
  { variables, environment = siteEnvironment(variables), clock = systemClock, run = runSiteCommand }: SchedulerOptions,
): SchedulerProvider {
  return name === "slurm" ? new SlurmProvider({ environment, run, clock }) : new GridEngineProvider({ environment, run, clock });
}
