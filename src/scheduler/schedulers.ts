import { RelayError } from "../domain/errors.ts";
import type { SchedulerName } from "../domain/scheduler.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import type { SchedulerProvider } from "./provider.ts";
import { type RunSiteCommand, runSiteCommand, siteEnvironment } from "./site-command.ts";
import { SlurmProvider } from "./slurm/provider.ts";

export interface SchedulerOptions {
  /** The worker's variables; a site's commands get those of them that they need. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
  readonly run?: RunSiteCommand;
}

/** The provider of a scheduler. Whether the site has it, `probe` says. */
export function schedulerProvider(
  name: SchedulerName,
  { variables, clock = systemClock, run = runSiteCommand }: SchedulerOptions,
): SchedulerProvider {
  if (name !== "slurm") throw new RelayError("scheduler_unavailable", `there is no provider for ${name} here`);
  const environment = siteEnvironment(variables);
  return new SlurmProvider({ environment, run, clock });
}
