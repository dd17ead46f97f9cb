import { afterAll, beforeAll, expect, test } from "bun:test";
import { Slurm } from "../../../rigs/slurm.ts";
import { describeWith } from "../../../runner/components.ts";
import { eventually } from "../../../runner/wait.ts";
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
  const ended = async (line: string) => {
    const { job_id } = await worker.submit({ argv: ["/bin/sh", "-c", line], scheduler: { memory_bytes: 300 * MiB } });
    return { job_id, outcome: (await worker.ended(job_id)).job.outcome! };
  };
  const outcomeOf = async (line: string) => (await ended(line)).outcome;

  test("ends as what the kernel did to it, with SLURM's word for it and what SLURM says besides", async () => {
    const outcome = await outcomeOf(`exec ${eats}`);
    expect(outcome).toMatchObject({ reason: "signaled", signal: "SIGKILL" });
    expect(outcome.message).toContain("OUT_OF_MEMORY");
    expect(outcome.message).toContain(KILLED);
  });

  test("also where a shell tells of it by its code", async () => {
    const told = await outcomeOf(`echo begun; ${eats}`);
    expect(told).toMatchObject({ reason: "exit_nonzero", exit_code: 137, message: expect.stringContaining("OUT_OF_MEMORY") });
  });

  test("and goes on in spite of it has ended as it says; what the kernel did is said at once, and SLURM's word when it comes", async () => {
    const { job_id, outcome } = await ended(`${eats}; ${eats}; echo on`);
    expect(outcome).toMatchObject({ reason: "completed", exit_code: 0, message: expect.stringContaining("2 of the job's processes") });
    const events = () => worker.events(job_id);
    expect(await events()).toContainEqual(
      expect.objectContaining({ event_type: "execution.out_of_memory", level: "warning", payload: { count: 2 } }),
    );
    const word = await eventually(async () => (await events()).find(({ event_type }) => event_type === "scheduler.job_completed"), {
      what: "SLURM's word",
    });
    expect(word).toMatchObject({ level: "warning", payload: { raw_state: "OUT_OF_MEMORY" } });
  });
});
