import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";
import { Slurm, type SlurmOptions } from "../../rigs/slurm.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { type SchedulerSite, schedulerContract } from "./contract.ts";
import { providerWithout } from "./programs.ts";

async function slurmSite(options: SlurmOptions): Promise<SchedulerSite> {
  const slurm = await Slurm.start(options);
  const place = temporaryDirectory();
  return {
    provider: schedulerProvider("slurm", { variables: slurm.variables }),
    directory: place.path,
    without: (...programs) => providerWithout("slurm", slurm.variables, place.path, programs),
    async [Symbol.asyncDispose]() {
      await slurm[Symbol.asyncDispose]();
      place[Symbol.dispose]();
    },
  };
}

const PROMISES = { tellsCanceled: true, refusedRequest: { partition: "nowhere" }, unknownId: "60000000", activeSource: "squeue" } as const;

describeWith("slurm", "on real daemons", () => {
  schedulerContract("SLURM without accounting", () => slurmSite({}), { ...PROMISES, accounting: false });
  schedulerContract("SLURM with accounting", () => slurmSite({ accounting: true }), { ...PROMISES, accounting: true });
});
