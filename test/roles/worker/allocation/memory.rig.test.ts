import { afterAll, beforeAll, expect, test } from "bun:test";
import { Slurm } from "../../../rigs/slurm.ts";
import { describeWith } from "../../../runner/components.ts";
import type { WorkerHarness } from "../harness.ts";
import { workerOn } from "./site.ts";

const MiB = 1024 * 1024;
/** What SLURM writes into its output file when the kernel has ended something of a job (slurm/src/slurmd/slurmstepd). */
const KILLED = "oom-kill event";

describeWith(["slurm", "slurm-memory", "python3"], "a job on SLURM that takes more memory than it asked for", () => {
  let slurm: Slurm;
  let worker: WorkerHarness;

  beforeAll(async () => {
    slurm = await Slurm.start({ boundsMemory: true });
    worker = await workerOn(slurm);
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await slurm?.[Symbol.asyncDispose]();
  });

  const eats = `python3 -c 'x = bytearray(${600 * MiB})'`;
  const outcomeOf = async (line: string) => {
    const { job_id } = await worker.submit({ argv: ["/bin/sh", "-c", line], scheduler: { memory_bytes: 300 * MiB } });
    return (await worker.ended(job_id)).job.outcome!;
  };

  test("ends as what the kernel did to it, with SLURM's word for it and what SLURM says besides", async () => {
    const outcome = await outcomeOf(`exec ${eats}`);
    expect(outcome).toMatchObject({ reason: "signaled", signal: "SIGKILL" });
    expect(outcome.message).toContain("OUT_OF_MEMORY");
    expect(outcome.message).toContain(KILLED);
  });

  test("also where a shell tells of it by its code; what goes on in spite of it has ended as it says", async () => {
    const told = await outcomeOf(`echo begun; ${eats}`);
    expect(told).toMatchObject({ reason: "exit_nonzero", exit_code: 137, message: expect.stringContaining("OUT_OF_MEMORY") });
    expect(await outcomeOf(`${eats}; echo on`)).toMatchObject({ reason: "completed", exit_code: 0 });
  });
});
