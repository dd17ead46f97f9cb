import fs from "node:fs";
import path from "node:path";
import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";
import { endBelow } from "../../rigs/slurm.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { type SchedulerSite, schedulerContract } from "./contract.ts";
import { providerWithout } from "./programs.ts";

const COMMANDS = ["sbatch", "squeue", "sacct", "scontrol", "scancel"];

/** A SLURM of another release than the one at hand, as its commands take options and print: by its manual pages and sources. */
async function recordedSite(version: string, accounting: boolean): Promise<SchedulerSite> {
  const place = temporaryDirectory();
  const programs = path.join(place.path, "bin");
  for (const name of ["bin", "jobs"]) fs.mkdirSync(path.join(place.path, name));
  fs.writeFileSync(path.join(place.path, "slurm.conf"), `Version=${version}\nAccounting=${accounting ? "yes" : "no"}\n`);
  const entry = path.join(import.meta.dir, "recorded-slurm-entry.ts");
  for (const name of COMMANDS) {
    fs.writeFileSync(path.join(programs, name), `#!/bin/sh\nexec '${process.execPath}' '${entry}' ${name} "$@"\n`, { mode: 0o755 });
  }
  const variables = { PATH: `${programs}:/usr/bin:/bin`, HOME: "/root", USER: "root", SLURM_CONF: path.join(place.path, "slurm.conf") };
  return {
    provider: schedulerProvider("slurm", { variables }),
    directory: place.path,
    without: (...missing) => providerWithout("slurm", variables, place.path, missing),
    async [Symbol.asyncDispose]() {
      await eventually(() => endBelow(place.path) === 0, { what: "the end of its jobs" });
      place[Symbol.dispose]();
    },
  };
}

const PROMISES = {
  tellsCanceled: true,
  refusedRequest: { partition: "nowhere" },
  unknownId: "60000000",
  activeSource: "squeue",
  slots: 4,
} as const;

schedulerContract("SLURM 20.11 without accounting, recorded", () => recordedSite("20.11.9", false), { ...PROMISES, accounting: false });
schedulerContract("SLURM 25.05 with accounting, recorded", () => recordedSite("25.05.4", true), { ...PROMISES, accounting: true });
