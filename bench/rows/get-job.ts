import path from "node:path";
import { install } from "../installation.ts";
import { connectPlain } from "../plain-http.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { type Latency, latencyOf } from "../yardsticks/latency.ts";

async function getting(socketPath: string, route: string, runs: number): Promise<Latency> {
  const connection = await connectPlain(socketPath);
  const samples: number[] = [];
  try {
    for (let i = -runs / 10; i < runs; i++) {
      const begin = performance.now();
      const { status } = await connection.get(route);
      if (status !== 200) throw new Error(`the answer is ${status}`);
      if (i >= 0) samples.push(performance.now() - begin);
    }
  } finally {
    connection.close();
  }
  return latencyOf(samples);
}

/** What it costs to ask for a job, one request after the other on a connection that is kept. */
export const row: Row = {
  name: "get-job",
  async run(context: BenchContext): Promise<Result[]> {
    const runs = Math.ceil(3_000 * context.scale);
    await using relay = await install(context);
    const { job_id } = await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["true"], workdir: "/" } });
    const job = await relay.worker.wait(job_id, { timeout_seconds: 30 });
    const bareSocket = path.join(context.directory, "bare.sock");
    const script = path.join(path.dirname(import.meta.dir), "bare-hono-process.ts");
    const bare = Bun.spawn([context.bun, script, bareSocket, JSON.stringify(job)], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    try {
      await bare.stdout.getReader().read();
      const route = `/jobs/${job_id}`;
      const yardstick = await getting(bareSocket, route, runs);
      const through = await getting(relay.paths.desktopSocket, `/clusters/local${route}`, runs);
      const straight = await getting(relay.paths.workerSocket("local"), route, runs);
      const named = (value: number) => ({ name: "bare Hono route", value });
      return [
        {
          name: "GET job through the desktop, p50",
          unit: "ms",
          yardstick: named(yardstick.p50),
          ours: through.p50,
          target: { overYardstickAtMost: 2 },
        },
        { name: "the same, p99", unit: "ms", yardstick: named(yardstick.p99), ours: through.p99, target: null },
        { name: "GET job at the worker's socket, p50", unit: "ms", yardstick: named(yardstick.p50), ours: straight.p50, target: null },
      ];
    } finally {
      bare.kill();
      await bare.exited;
    }
  },
};
