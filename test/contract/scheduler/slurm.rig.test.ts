import fs from "node:fs";
import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";
import { Slurm, type SlurmOptions } from "../../rigs/slurm.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { schedulerContract } from "./contract.ts";
import { providerWithout } from "./programs.ts";
import { type SlurmSite, slurmFaults } from "./slurm-faults.ts";

async function slurmSite(options: SlurmOptions): Promise<SlurmSite> {
  const slurm = await Slurm.start(options);
  const place = temporaryDirectory();
  fs.chmodSync(place.path, 0o755);
  return {
    slurm,
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
  schedulerContract("SLURM without accounting", () => slurmSite({}), { ...PROMISES, accounting: false, slots: 4 });
  schedulerContract(
    "SLURM with accounting, two nodes and GPUs",
    () => slurmSite({ accounting: true, nodes: 2, gpus: 2 }),
    { ...PROMISES, accounting: true, slots: 8 },
    slurmFaults,
  );
});
