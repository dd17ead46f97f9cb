import { afterAll, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../../../src/lib/waiting/clock.ts";
import { runSiteCommand } from "../../../../src/scheduler/site-command.ts";
import { SlurmProvider } from "../../../../src/scheduler/slurm/provider.ts";
import { Slurm } from "../../../rigs/slurm.ts";
import { describeWith } from "../../../runner/components.ts";
import { eventually } from "../../../runner/wait.ts";
import type { WorkerHarness } from "../harness.ts";
import { workerOn } from "./site.ts";

const SAYS_WHERE = "echo $SLURM_CLUSTER_NAME";

describeWith("slurm", "a site of two clusters of SLURM", () => {
  let here: Slurm;
  let there: Slurm;
  let worker: WorkerHarness;

  beforeAll(async () => {
    here = await Slurm.start({ accounting: true });
    there = await Slurm.start({ accounting: true, beside: here });
    worker = await workerOn(here);
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await there?.[Symbol.asyncDispose]();
    await here?.[Symbol.asyncDispose]();
  });

  const submit = (line: string, scheduler: Record<string, unknown>) =>
    worker.submit({ argv: ["/bin/sh", "-c", line], scheduler } as Parameters<WorkerHarness["submit"]>[0]);
  const native = async (jobId: string) => (await worker.client.status(jobId)).scheduler?.at(-1) ?? null;
  const output = (jobId: string) =>
    eventually(async () => (await worker.stdout(jobId).catch(() => "")) || false, { what: `output of ${jobId}` });

  test("a job that names the other one runs there, and is canceled there", async () => {
    const { job_id } = await submit(`${SAYS_WHERE}; exit 3`, { options: ["--clusters=other"] });
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
    expect(await worker.stdout(job_id)).toBe("other\n");
    expect(await native(job_id)).toMatchObject({ scheduler_cluster: "other" });
    const long = await submit(`${SAYS_WHERE}; sleep 100`, { options: ["--clusters=other"] });
    await output(long.job_id);
    await worker.client.cancel(long.job_id, { cancel_scheduler_job: true });
    expect((await worker.ended(long.job_id)).job.outcome).toMatchObject({ reason: "canceled" });
    const { native_id } = (await native(long.job_id))!;
    expect(there.must("squeue", "-h", "-t", "all", "-o", "%A %T")).toMatch(new RegExp(`^${native_id} (FAILED|CANCELLED)$`, "m"));
  });

  test("in a federation a job that the other one has taken is followed, found again by its name, and canceled", async () => {
    here.must("sacctmgr", "-i", "add", "federation", "both", "clusters=demo,other");
    for (const slurm of [here, there])
      await eventually(() => /Synced:Yes/.test(slurm.must("scontrol", "show", "federation")), { what: "the federation" });
    // One for each: whichever is second finds the first cluster's node taken.
    const jobs = await Promise.all([1, 2].map(() => submit(`${SAYS_WHERE}; sleep 300`, { exclusive: true })));
    const where = await Promise.all(jobs.map(async ({ job_id }) => (await output(job_id)).trim()));
    expect(where.toSorted()).toEqual(["demo", "other"]);
    for (const { job_id } of jobs)
      await eventually(async () => (await native(job_id))?.status?.phase === "running", { what: `SLURM's word on ${job_id}` });
    const provider = new SlurmProvider({ environment: here.variables, run: runSiteCommand, clock: systemClock });
    for (const { job_id } of jobs) {
      const { marker, native_id } = (await native(job_id))!;
      expect(await provider.find(marker)).toMatchObject({ found: [{ id: native_id, cluster: null }], reached: true });
    }
    const away = jobs[where.indexOf("other")]!;
    expect((await native(away.job_id))!.status).toMatchObject({ raw_state: "RUNNING", nodes: "far1" });
    for (const { job_id } of jobs) await worker.client.cancel(job_id, { cancel_scheduler_job: true });
    for (const { job_id } of jobs) expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "canceled" });
    const left = await eventually(() => there.must("squeue", "-h", "--local", "-o", "%T").trim() === "" && "none", {
      what: "its end there",
    });
    expect(left).toBe("none");
  });
});
