import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { JobStatus, SchedulerObserved } from "../../../src/domain/views.ts";
import { Slurm } from "../../rigs/slurm.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { initialized, type SourceRelay } from "../source-relay.ts";

describeWith("slurm", "jobs in allocations, from the command line", () => {
  let slurm: Slurm;
  let relay: SourceRelay;
  beforeAll(async () => {
    slurm = await Slurm.start();
    relay = await initialized({ ...slurm.variables, HOME: path.join(slurm.directory, "home") });
    await relay.ok("cluster", "add", "local", "--scheduler-provider", "slurm");
    await relay.ok("worker", "start");
  });
  afterAll(async () => {
    await relay?.[Symbol.asyncDispose]();
    await slurm?.[Symbol.asyncDispose]();
  });

  const status = (id: string): Promise<JobStatus> => relay.json<JobStatus>("job", "status", id);
  const there = async (id: string) => (await status(id)).scheduler?.at(-1) ?? null;
  const until = (what: string, holds: () => Promise<boolean>): Promise<true> => eventually(holds, { what });
  /** Its id there, once it runs. */
  const running = async (id: string): Promise<string> => {
    await until("the job's allocation", async () => (await status(id)).job.state === "running" && (await there(id))?.native_id != null);
    return (await there(id))!.native_id!;
  };

  test("a command and a batch script run there as here", async () => {
    fs.writeFileSync(
      path.join(relay.directory, "job.sbatch"),
      "#!/bin/sh\n#SBATCH --comment=of-the-script --export=ALL,GIVEN=small -J mine\n#SBATCH --ntasks=2\necho given=$GIVEN; echo $SLURM_NTASKS >out.txt; scontrol show job $SLURM_JOB_ID\n",
    );
    const ask = ["--scheduler", "slurm", "--ntasks", "1", "--time", "00:05:00", "--job-name", "train"];
    const [command, script] = await Promise.all([
      relay.run(["job", "submit", "--wait", ...ask, "--", "sh", "-c", "echo in $SLURM_JOB_NAME; exit 3"]),
      relay.run(["job", "submit", "--wait", "--sbatch", "job.sbatch", "--time", "7:00", "--output", "out.txt"]),
    ]);
    const array = await relay.run(["job", "submit", "--scheduler", "slurm", "--scheduler-option=--array=1-9", "--", "true"]);
    expect([array.code, array.stderr]).toEqual([2, expect.stringContaining("[job_submission_refused]")]);
    expect([command.code, command.stderr]).toEqual([10, expect.stringContaining("exited with code 3")]);
    const id = command.stdout.trim();
    expect(await relay.ok("job", "read-log", id)).toBe(`in train.clio-${id.slice("job_".length)}-1`);
    expect([script.code, script.stderr]).toEqual([0, expect.any(String)]);
    const said = await relay.ok("job", "read-log", script.stdout.trim());
    expect(said).toContain("Comment=of-the-script");
    expect(said).toContain(`JobName=mine.clio-${script.stdout.trim().slice("job_".length)}-1`);
    expect(said).toStartWith("given=small\n");
    expect(said).toContain("TimeLimit=00:07:00");
    expect((await relay.ok("job", "list-artifacts", script.stdout.trim())).split("\n").some((line) => line.includes("out.txt"))).toBe(true);
    const page = await relay.ok("job", "status", id);
    expect(page).toMatch(/^scheduler +slurm \d+/m);
  });

  test("a cancel leaves the scheduler's job to go on, and says how it is ended; later it is", async () => {
    const [id, other] = await Promise.all([1, 2].map(() => relay.submit("--scheduler", "auto", "--time", "5", "--", "sleep", "300")));
    const native = await running(id!);
    await until("what the scheduler says", async () => (await there(id!))?.status?.phase === "running");
    const page = await relay.ok("job", "status", id!);
    expect(page).toMatch(new RegExp(`^scheduler +slurm ${native}.*: running \\(RUNNING\\)$`, "m"));
    expect(page).toMatch(/^nodes +rig1$/m);
    const asked = await relay.run(["job", "cancel", id!, "--keep-scheduler-job"]);
    const goesOn = `notice: slurm ${native} goes on; clio-relay scheduler cancel ${native} --cluster local ends it\n`;
    expect([asked.code, asked.stderr]).toEqual([0, goesOn]);
    const watched = await relay.run(["job", "watch", id!]);
    expect(watched.code).toBe(10);
    expect(watched.stdout).toContain(`scheduler.job_running  slurm says of ${native}: running (RUNNING) on rig1`);
    expect(watched.stdout).toMatch(new RegExp(`^${id} canceled`, "m"));
    expect(slurm.must("squeue", "-h", "-j", native, "-o", "%T").trim()).toBe("RUNNING");
    const seen = await relay.json<SchedulerObserved>("scheduler", "status", native);
    expect(seen).toMatchObject({ phase: "running", job_id: id, attempt: 1 });
    expect(await relay.ok("job", "status", id!)).toContain("it was left to go on");
    // Of one that has not ended it is a cancel of the job itself.
    const live = (await there(other!))!.native_id!;
    expect(await relay.json("scheduler", "cancel", live)).toMatchObject({ job_id: other, disposition: "cancel_requested" });
    const again = await relay.run(["job", "cancel", id!, "--cancel-scheduler-job"]);
    expect([again.code, again.stderr]).toEqual([0, `notice: slurm ${native}, which was left to go on, is asked to end\n`]);
    await until("their ends", async () => (await there(id!))?.ended_at !== null && (await status(other!)).terminal);
    expect(await relay.ok("scheduler", "status", native)).toMatch(new RegExp(`^job +${id}$`, "m"));
    expect(await relay.ok("scheduler", "cancel", native)).toBe(`slurm ${native} had ended already; ${id} is canceled`);
    expect((await status(other!)).job.state).toBe("canceled");
    expect(slurm.run("squeue", "-h", "-t", "RUNNING", "-o", "%i").stdout.trim()).toBe("");
  });

  test("an id that is no job's here can be looked at, and is not ended", async () => {
    const foreign = slurm.must("sbatch", "--parsable", "--output=/dev/null", "--wrap", "sleep 60").trim();
    const refused = await relay.run(["scheduler", "cancel", foreign]);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("[resource_ownership_refused]")]);
    expect(await relay.json<SchedulerObserved>("scheduler", "status", foreign)).toMatchObject({ job_id: null, name: "wrap" });
    slurm.must("scancel", foreign);
  });
});
