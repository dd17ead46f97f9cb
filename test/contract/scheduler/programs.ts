import fs from "node:fs";
import path from "node:path";
import type { SchedulerProvider } from "../../../src/scheduler/provider.ts";
import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";

const COMMANDS = {
  slurm: ["sbatch", "squeue", "sacct", "scontrol", "scancel"],
  gridengine: ["qsub", "qstat", "qacct", "qdel"],
} as const;

/** A provider whose PATH has the site's commands but for some, and what shells need. */
export function providerWithout(
  name: keyof typeof COMMANDS,
  variables: Readonly<Record<string, string>>,
  directory: string,
  without: readonly string[],
): SchedulerProvider {
  const place = fs.mkdtempSync(path.join(directory, "programs-"));
  for (const program of [...COMMANDS[name], "sh", "basename", "uname"]) {
    const at = Bun.which(program, { PATH: variables["PATH"]! });
    if (at !== null && !without.includes(program)) fs.symlinkSync(at, path.join(place, program));
  }
  return schedulerProvider(name, { variables: { ...variables, PATH: place } });
}
