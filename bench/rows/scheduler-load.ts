import fs from "node:fs";
import path from "node:path";
import { isTerminal } from "../../src/domain/transitions.ts";
import { LOOK_MS } from "../../src/scheduler/observer.ts";
import { Slurm } from "../../test/rigs/slurm.ts";
import { eventually } from "../../test/runner/wait.ts";
import { type Installation, install } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";

/** SLURM's commands that only ask. */
const SOURCES = ["squeue", "sacct", "scontrol"] as const;
/** How many looks are counted. */
const LOOKS = 4;

/** What many jobs at a scheduler cost that: how often a real SLURM is asked about 500 that wait, and about none. */
export const row: Row = {
  name: "scheduler-load",
  async run(context: BenchContext): Promise<Result[]> {
    await using slurm = await Slurm.start();
    const tools = path.join(context.directory, "tools");
    const calls = path.join(context.directory, "calls");
    fs.mkdirSync(tools);
    fs.writeFileSync(calls, "");
    for (const name of SOURCES) {
      const program = Bun.which(name, { PATH: slurm.variables["PATH"] ?? "" });
      fs.writeFileSync(path.join(tools, name), `#!/bin/sh\necho ${name} >>'${calls}'\nexec '${program}' "$@"\n`, { mode: 0o755 });
    }
    const variables = { ...slurm.variables, PATH: `${tools}:${slurm.variables["PATH"]}` };
    await using relay = await install(context, variables, (run) =>
      run(["cluster", "add", "local", "--scheduler-provider", "slurm"], "").then(() => undefined),
    );
    const count = Math.ceil(500 * context.scale);
    const jobs = await held(relay, count);
    const busy = await asked(calls);
    slurm.must("scancel", "--user=root", "--state=PENDING");
    for (const id of jobs)
      await eventually(async () => isTerminal((await relay.worker.job(id)).state), { what: "that all have ended", everyMs: 200 });
    const idle = await asked(calls);
    return [
      {
        name: `calls of the source that is asked most, in ${LOOK_MS / 1_000} s, about ${count} jobs`,
        unit: "calls",
        yardstick: null,
        ours: busy / LOOKS,
        target: { atMost: 1 },
      },
      { name: "calls about no job", unit: "calls", yardstick: null, ours: idle, target: { atMost: 0 } },
    ];
  },
};

/** Submit jobs that wait, until the scheduler has all of them. */
async function held(relay: Installation, count: number): Promise<string[]> {
  const jobs: string[] = [];
  for (let i = 0; i < count; i++) {
    const spec = { argv: ["true"], workdir: "/", scheduler: { options: ["--hold"] } };
    jobs.push((await relay.worker.submit({ cluster: "local", kind: "command", spec })).job_id);
  }
  const waits = async (id: string): Promise<boolean> => (await relay.worker.status(id)).scheduler?.[0]?.status?.phase === "pending";
  for (const id of jobs) await eventually(() => waits(id), { what: "that all are there", everyMs: 200 });
  return jobs;
}

/** How often the source that is asked most is asked in some looks' time, which begins just behind a look where there are any. */
async function asked(calls: string): Promise<number> {
  const lines = (): string[] => fs.readFileSync(calls, "utf8").split("\n").filter(Boolean);
  const before = lines().length;
  for (const until = performance.now() + 2 * LOOK_MS; lines().length === before && performance.now() < until; ) await Bun.sleep(20);
  await Bun.sleep(LOOK_MS / 2);
  const from = lines().length;
  await Bun.sleep(LOOKS * LOOK_MS);
  const during = lines().slice(from);
  return Math.max(...SOURCES.map((name) => during.filter((line) => line === name).length));
}
