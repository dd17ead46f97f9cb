import { beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { SchedulerRequest, type SchedulerStatus } from "../../../src/domain/scheduler.ts";
import { type BatchJob, type NativeJob, nativeKey, type SchedulerProvider } from "../../../src/scheduler/provider.ts";
import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";
import { runSiteCommand } from "../../../src/scheduler/site-command.ts";
import type { Slurm } from "../../rigs/slurm.ts";
import { makeUser, removeUser } from "../../rigs/sshd.ts";
import { eventually } from "../../runner/wait.ts";
import type { SchedulerSite } from "./contract.ts";

export interface SlurmSite extends SchedulerSite {
  readonly slurm: Slurm;
}

/** What only SLURM with accounts, two nodes and two GPUs on each can show. */
export function slurmFaults(site: () => SlurmSite): void {
  let slurm: Slurm;
  let provider: SchedulerProvider;
  let count = 0;

  beforeAll(() => {
    ({ slurm, provider } = site());
  });

  const batch = (lines: readonly string[], given: v.InferInput<typeof SchedulerRequest> = {}): BatchJob => {
    const marker = `clio-${crypto.randomUUID().replaceAll("-", "")}-${++count}`;
    const directory = path.join(site().directory, marker);
    fs.mkdirSync(directory);
    const request = v.parse(SchedulerRequest, given);
    const script = path.join(directory, "batch.sh");
    fs.writeFileSync(script, provider.script(request, null, lines).text, { mode: 0o755 });
    return { request, marker, script, output: path.join(directory, "log"), workdir: directory };
  };
  const submitted = async (job: BatchJob): Promise<NativeJob> => {
    const outcome = await provider.submit(job);
    expect(outcome.kind, outcome.said).toBe("accepted");
    return (outcome as Extract<typeof outcome, { kind: "accepted" }>).native;
  };
  const status = async (native: NativeJob): Promise<SchedulerStatus | undefined> =>
    (await provider.observe([native])).statuses.get(nativeKey(native));
  const reached = (native: NativeJob, ...phases: readonly string[]): Promise<SchedulerStatus> =>
    eventually(
      async () => {
        const seen = await status(native);
        return seen !== undefined && phases.includes(seen.phase) ? seen : null;
      },
      { what: `${native.id} in ${phases.join(", ")}`, everyMs: 200 },
    );

  test("a job of two nodes and four GPUs gets them, and its steps are no jobs", async () => {
    const job = batch(['echo "$SLURM_JOB_NUM_NODES $SLURM_GPUS" > said', "srun --ntasks=2 true", "sleep 1"], {
      nodes: 2,
      gpus: 4,
      tasks: 2,
    });
    const native = await submitted(job);
    const seen = await reached(native, "running");
    expect(seen).toMatchObject({ nodes: "rig[1-2]", name: job.marker });
    await reached(native, "completed", "failed");
    expect(fs.readFileSync(path.join(job.workdir, "said"), "utf8")).toBe("2 4\n");
    expect((await provider.find(job.marker)).found).toEqual([native]);
    expect(slurm.must("sacct", "-n", "-P", "-j", native.id, "-o", "JobID").trim().split("\n").length).toBeGreaterThan(1);
  });

  test("a cluster that is named is asked by its name", async () => {
    const job = batch(["sleep 30"], { options: ["--clusters=demo"] });
    const native = await submitted(job);
    expect(native.cluster).toBe("demo");
    expect(provider.clusters(job.request, null)).toEqual(["demo"]);
    expect(await provider.find(job.marker, { clusters: ["demo"] })).toMatchObject({ found: [native], complete: true });
    expect(await reached(native, "running")).toMatchObject({ cluster: "demo", scheduler_job_id: native.id });
    const nowhere = await provider.find(job.marker, { clusters: ["nowhere"] });
    expect(nowhere).toMatchObject({ found: [], complete: false });
    expect((await provider.cancel(native, job.marker)).kind).toBe("asked");
    expect((await reached(native, "canceled")).cluster).toBe("demo");
  });

  test("elements of an array are told apart, a hold and a requeue are no ends", async () => {
    const script = batch(["sleep 60"]).script;
    const submit = (...args: readonly string[]): string => slurm.must("sbatch", "--parsable", "--output=/dev/null", ...args, script).trim();
    const array = submit("--array=1-4%1", "--exclusive");
    const held = submit("--hold");
    const requeued = submit("--requeue");
    const job = (id: string): NativeJob => ({ id, cluster: null });
    await reached(job(requeued), "running");
    await reached(job(`${array}_1`), "running");
    const all = [`${array}_1`, `${array}_3`, array, `${array}_[2-4]`, `${array}_9`, held].map(job);
    const { statuses } = await provider.observe(all, { positions: true });
    expect(all.map((one) => statuses.get(nativeKey(one))?.phase)).toEqual([
      "running",
      "pending",
      "running",
      "pending",
      "unknown",
      "pending",
    ]);
    expect(statuses.get(held)?.reason).toBe("JobHeldUser");
    slurm.must("scontrol", "requeue", requeued);
    expect(await reached(job(requeued), "pending")).toMatchObject({ active_record_found: true });
    slurm.must("scancel", array, held, requeued);
    expect((await reached(job(array), "canceled")).record_found).toBe(true);
  });

  test("somebody else's job is not ended, whatever its name", async () => {
    const user = makeUser();
    try {
      const theirs = schedulerProvider("slurm", {
        variables: slurm.variables,
        run: (command) => runSiteCommand({ ...command, argv: ["runuser", "-u", user.name, "--", ...command.argv] }),
      });
      const job = batch(["sleep 30"]);
      const native = await submitted(job);
      const outcome = await theirs.cancel(native, job.marker);
      expect(outcome.kind).toBe("refused");
      expect(outcome.said).not.toBe("");
      expect(await reached(native, "running", "pending")).toMatchObject({ active_record_found: true });
      await provider.cancel(native, job.marker);
    } finally {
      removeUser(user);
    }
  });

  test("a node that fails ends its job", async () => {
    const job = batch(["sleep 60"], { options: ["--nodelist=rig2"] });
    const native = await submitted(job);
    await reached(native, "running");
    slurm.must("scontrol", "update", "nodename=rig2", "state=down", "reason=test");
    expect(await reached(native, "failed")).toMatchObject({ raw_state: "NODE_FAIL" });
    // A node that answers comes back by itself, sooner or later.
    await eventually(
      () => {
        slurm.run("scontrol", "update", "nodename=rig2", "state=resume");
        return slurm.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.includes("rig2");
      },
      { what: "the node", everyMs: 200 },
    );
  });

  test("without accounts, the queue and the controller answer", async () => {
    const job = batch(["exit 7"]);
    const native = await submitted(job);
    await slurm.kill("slurmdbd");
    const seen = await eventually(
      async () => {
        const { statuses, failures } = await provider.observe([native]);
        const found = statuses.get(native.id);
        return found?.phase === "failed" ? { found, failures } : null;
      },
      { what: "the end of it", everyMs: 200 },
    );
    expect(seen.found).toMatchObject({ record_found: true, active_record_found: false, exit_code: 7, raw_state: "FAILED" });
    expect([...seen.failures.keys()]).toEqual(["sacct"]);
    const unknown = { id: "60000000", cluster: null };
    expect((await provider.observe([unknown])).statuses.size).toBe(0);
    expect(await provider.find(job.marker)).toMatchObject({ found: [native], complete: false });
    await slurm.restart("slurmdbd");
    await eventually(async () => (await provider.observe([unknown])).statuses.get(unknown.id)?.record_found === false, {
      what: "the accounts",
      everyMs: 200,
    });
  });

  test("a controller that stands still, or is killed, loses no job and makes none twice", async () => {
    const before = batch(["sleep 60"]);
    const during = batch(["sleep 60"]);
    const native = await submitted(before);
    await reached(native, "running");
    await eventually(() => slurm.run("sacct", "-n", "-X", "-P", "-j", native.id, "-o", "State").stdout.trim() === "RUNNING", {
      what: "the accounts",
    });
    slurm.signal("slurmctld", "SIGSTOP");
    const [outcome, { statuses, failures }, finding, cancel] = await Promise.all([
      provider.submit(during),
      provider.observe([native]),
      provider.find(before.marker),
      provider.cancel(native, before.marker),
    ]);
    expect(["refused", "doubt"]).toContain(outcome.kind);
    expect([...failures.keys()]).toEqual(["squeue"]);
    expect(statuses.get(native.id)).toMatchObject({ phase: "running", record_found: true, active_record_found: null });
    expect(finding).toMatchObject({ complete: false, found: [native] });
    expect(cancel.kind).toBe("doubt");
    slurm.signal("slurmctld", "SIGCONT");
    // What sbatch was told no about may have been taken after all, and may turn up later than the first answer.
    const found = async (): Promise<number> => (await provider.find(during.marker)).found.length;
    expect(await found()).toBeLessThanOrEqual(1);
    await slurm.kill("slurmctld");
    await slurm.restart("slurmctld");
    expect(await reached(native, "running")).toMatchObject({ name: before.marker });
    expect(await found()).toBeLessThanOrEqual(1);
    expect((await provider.cancel(native, before.marker)).kind).toBe("asked");
    expect((await reached(native, "canceled")).record_found).toBe(true);
  });
}
