import fs from "node:fs";
import path from "node:path";
import type { JobSubmissionInput } from "../../src/domain/job.ts";
import { attemptDirectory, jobDirectory } from "../../src/execution/attempt-dir.ts";
import { Slurm } from "../../test/rigs/slurm.ts";
import { eventually } from "../../test/runner/wait.ts";
import { followedLines } from "../followed-lines.ts";
import { type Installation, install, residentBytes } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { latencyOf, wallClock } from "../yardsticks/latency.ts";

const MB = 1_000_000;
const WRITER = `
const fs = require("node:fs");
for (let i = 0; i < Number(process.argv[2]); i++) {
  await Bun.sleep(20 + Math.random() * 60);
  fs.writeSync(1, (performance.timeOrigin + performance.now()) + "\\n");
}
`;

type Command = Extract<JobSubmissionInput, { kind: "command" }>["spec"];

/** A job in an allocation of a real SLURM, beside what sbatch costs by itself. */
export const row: Row = {
  name: "scheduler",
  async run(context: BenchContext): Promise<Result[]> {
    await using slurm = await Slurm.start();
    await using relay = await install(context, { ...slurm.variables }, (run) =>
      run(["cluster", "add", "local", "--scheduler-provider", "slurm"], "").then(() => undefined),
    );
    const submit = (spec: Command) => relay.worker.submit({ cluster: "local", kind: "command", spec: { workdir: "/", ...spec } });
    const submissions = await submitting(context, slurm, relay, submit);
    const follower = await following(context, relay, submit);
    const resident = await shimOf(relay, submit);
    const seen = await changes(context, slurm, relay, submit);
    const told = await reports(context, relay, submit);
    return [
      {
        name: "submit to sbatch returning, on record, p50",
        unit: "ms",
        yardstick: { name: "sbatch", value: submissions.sbatch },
        ours: submissions.ours,
        target: { overYardstickAtMost: 30 },
      },
      { name: "output in the allocation to follower, p99", unit: "ms", yardstick: null, ours: follower, target: { atMost: 2_000 } },
      { name: "shim in an allocation, resident", unit: "MB", yardstick: null, ours: resident / MB, target: { atMost: 35 } },
      { name: "state change in SLURM to event, longest", unit: "s", yardstick: null, ours: seen / 1_000, target: { atMost: 7 } },
      { name: "end that the job itself reports to event, longest", unit: "ms", yardstick: null, ours: told, target: { atMost: 1_000 } },
    ];
  },
};

type Submit = (spec: Command) => Promise<{ readonly job_id: string }>;

/** The one record of a job's submission. */
async function recordOf(relay: Installation, jobId: string) {
  return eventually(
    async () => {
      const [record] = (await relay.worker.status(jobId)).scheduler ?? [];
      return record?.submission === "submitted" && record;
    },
    { what: "the submission", everyMs: 20 },
  );
}

/** Held jobs, in turns with sbatch: nothing of them runs and takes the machine's time. */
async function submitting({ directory, scale }: BenchContext, slurm: Slurm, relay: Installation, submit: Submit) {
  const script = path.join(directory, "held.sh");
  fs.writeFileSync(script, "#!/bin/sh\ntrue\n");
  const times = { sbatch: [] as number[], ours: [] as number[] };
  const jobs: string[] = [];
  for (let i = 0; i < Math.ceil(20 * scale) + 2; i++) {
    const began = wallClock();
    await Bun.spawn(["sbatch", "--hold", "--parsable", "--output=/dev/null", script], { env: { ...slurm.variables }, stdout: "ignore" })
      .exited;
    const between = wallClock();
    const { job_id } = await submit({ argv: ["true"], scheduler: { options: ["--hold"] } });
    const { submitted_at } = await recordOf(relay, job_id);
    jobs.push(job_id);
    if (i < 2) continue;
    times.sbatch.push(between - began);
    times.ours.push(Date.parse(submitted_at ?? "") - between);
  }
  for (const id of jobs) await relay.worker.cancel(id, { cancel_scheduler_job: true });
  slurm.must("scancel", "--user=root", "--state=PENDING");
  return { sbatch: latencyOf(times.sbatch).p50, ours: latencyOf(times.ours).p50 };
}

async function following({ directory, executable, scale }: BenchContext, relay: Installation, submit: Submit): Promise<number> {
  const script = path.join(directory, "writer.ts");
  fs.writeFileSync(script, WRITER);
  const lines = Math.ceil(100 * scale);
  const { job_id } = await submit({ argv: [executable, script, String(lines)], env: { BUN_BE_BUN: "1" }, scheduler: {} });
  const response = await relay.desktop.logContent(job_id, "stdout", { follow: true });
  return (await followedLines(response, lines)).p99;
}

async function shimOf(relay: Installation, submit: Submit): Promise<number> {
  const { job_id } = await submit({ argv: ["sleep", "1000"], scheduler: {} });
  const start = path.join(attemptDirectory(jobDirectory(relay.paths.spoolDir("local"), job_id), 1), "start.json");
  await eventually(() => fs.existsSync(start), { what: "its claim" });
  const { shim } = JSON.parse(fs.readFileSync(start, "utf8")) as { readonly shim: { readonly pid: number } };
  await Bun.sleep(3_000);
  const resident = residentBytes(shim.pid);
  await relay.worker.cancel(job_id, { cancel_scheduler_job: true });
  await relay.worker.wait(job_id, { timeout_seconds: 60 });
  return resident;
}

/** A job that waits is cancelled outside; until the event that says so. */
async function changes({ scale }: BenchContext, slurm: Slurm, relay: Installation, submit: Submit): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < Math.ceil(4 * scale); i++) {
    const { job_id } = await submit({ argv: ["true"], scheduler: { options: ["--hold"] } });
    const { native_id } = await recordOf(relay, job_id);
    await Bun.sleep(500 + Math.random() * 5_000);
    slurm.must("scancel", native_id ?? "");
    const began = wallClock();
    await eventually(async () => (await relay.worker.status(job_id)).scheduler?.[0]?.status?.phase === "canceled", {
      what: "that it is seen",
      everyMs: 20,
    });
    samples.push(wallClock() - began);
    await relay.worker.cancel(job_id, { cancel_scheduler_job: true });
  }
  return latencyOf(samples).max;
}

/** Jobs that end by themselves; from the end as their shim records it until the event that says so. */
async function reports({ scale }: BenchContext, relay: Installation, submit: Submit): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < Math.ceil(20 * scale); i++) {
    const { job_id } = await submit({ argv: ["sleep", String(0.5 + Math.random())], scheduler: {} });
    await relay.worker.wait(job_id, { timeout_seconds: 60 });
    const { attempt } = await relay.worker.status(job_id);
    const { events } = await relay.worker.events(job_id, { limit: 100 });
    const told = events.find(({ event_type }) => event_type === "job.succeeded");
    samples.push(Date.parse(told?.created_at ?? "") - Date.parse(attempt?.ended_at ?? ""));
  }
  return latencyOf(samples).max;
}
