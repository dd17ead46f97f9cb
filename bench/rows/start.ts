import fs from "node:fs";
import path from "node:path";
import { install } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareSpawn } from "../yardsticks/bare-spawn.ts";
import { type Latency, latencyOf, wallClock } from "../yardsticks/latency.ts";

/** From the request's departure until the job's first process says what time it is. */
async function submitToStart(context: BenchContext, spares: number, runs: number): Promise<Latency> {
  const directory = path.join(context.directory, `spares-${spares}`);
  fs.mkdirSync(directory);
  await using relay = await install({ ...context, directory }, { CLIO_RELAY_SPARE_SHIMS: String(spares) });
  const samples: number[] = [];
  for (let i = 0; i < runs + 5; i++) {
    const begin = wallClock();
    const job = await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["date", "+%s%N"], workdir: "/" } });
    await relay.worker.wait(job.job_id, { timeout_seconds: 30 });
    const started = Number((await relay.worker.log(job.job_id, "stdout")).text) / 1e6;
    if (i >= 5) samples.push(started - begin);
    // The next spare takes a moment to be ready, as between two submissions of a person.
    await Bun.sleep(150);
  }
  return latencyOf(samples);
}

/** How long a job takes to start on an idle worker. `date` itself starts in about the time of `true`. */
export const row: Row = {
  name: "start",
  async run(context: BenchContext): Promise<Result[]> {
    const runs = Math.ceil(40 * context.scale);
    const bare = await bareSpawn(runs, context.bun);
    const cold = await submitToStart(context, 0, runs);
    const spare = await submitToStart(context, 1, runs);
    return [
      {
        name: "submit to start, no spare shim, p50",
        unit: "ms",
        yardstick: { name: "bare spawn + hello start", value: bare.true.p50 + bare.hello.p50 },
        ours: cold.p50,
        target: { overYardstickAtMost: 15 },
      },
      {
        name: "submit to start, spare shim waits, p50",
        unit: "ms",
        yardstick: { name: "bare spawn", value: bare.true.p50 },
        ours: spare.p50,
        target: { overYardstickAtMost: 10 },
      },
    ];
  },
};
