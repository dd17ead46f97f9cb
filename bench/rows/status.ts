import { install } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareSpawn } from "../yardsticks/bare-spawn.ts";
import { latencyOf } from "../yardsticks/latency.ts";

/** `job status` as a person or a script runs it: a new process, the daemon, the worker. */
export const row: Row = {
  name: "status",
  async run(context: BenchContext): Promise<Result[]> {
    const runs = Math.ceil(60 * context.scale);
    const bare = await bareSpawn(runs, context.bun);
    await using relay = await install(context);
    const job = await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["true"], workdir: "/" } });
    await relay.worker.wait(job.job_id, { timeout_seconds: 30 });
    await relay.run("job", "status", job.job_id);
    const samples: number[] = [];
    for (let i = 0; i < runs; i++) {
      const begin = performance.now();
      await relay.run("job", "status", job.job_id);
      samples.push(performance.now() - begin);
    }
    return [
      {
        name: "job status, p50",
        unit: "ms",
        yardstick: { name: "compiled hello", value: bare.hello.p50 },
        ours: latencyOf(samples).p50,
        target: { ratioAtMost: 6, atMost: 100 },
      },
    ];
  },
};
