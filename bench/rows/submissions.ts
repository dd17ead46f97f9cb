import type { ClusterClient } from "../../src/api/client.ts";
import { install } from "../installation.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareInsert } from "../yardsticks/bare-insert.ts";

const SPEC = { argv: ["python3", "train.py", "--epochs", "3"], workdir: "/" };

/** Durable submissions per second from `clients` clients that each wait for their answer. */
async function rate(cluster: ClusterClient, clients: number, total: number): Promise<number> {
  const one = () => cluster.submit({ cluster: "local", kind: "command", spec: SPEC });
  for (let i = 0; i < 50; i++) await one();
  let left = total;
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) await one();
    }),
  );
  return (total * 1_000) / (performance.now() - begin);
}

/** What it costs to be told that a job is safe. The worker is full, so that no job starts meanwhile. */
export const row: Row = {
  name: "submissions",
  async run(context: BenchContext): Promise<Result[]> {
    await using relay = await install(context, { CLIO_RELAY_ACTIVE_JOBS_MAX: "1000000" });
    for (let i = 0; i < 2; i++)
      await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["sleep", "1000"], workdir: "/" } });
    const count = Math.ceil(3_000 * context.scale);
    const bare = bareInsert(context.directory, count);
    context.note(`fsync ${bare.fsync.p50.toFixed(3)} ms p50`);
    const yardstick = { name: "bare transactions", value: bare.submissionsPerSecond };
    const one = await rate(relay.worker, 1, count);
    const many = await rate(relay.worker, 64, count * 2);
    const hop = await rate(relay.desktop, 1, count);
    const manyHop = await rate(relay.desktop, 64, count * 2);
    const running = (await relay.worker.queue({ state: ["leased", "running"], scan_limit: 10 })).jobs;
    for (const job of running) await relay.worker.cancel(job.job_id);
    for (const job of running) await relay.worker.wait(job.job_id, { timeout_seconds: 30 });
    return [
      { name: "durable submissions, 1 client", unit: "/s", yardstick, ours: one, target: { ratioAtLeast: 0.5 } },
      { name: "durable submissions, 64 clients", unit: "/s", yardstick, ours: many, target: { ratioAtLeast: 1.5 } },
      { name: "the same through the desktop, 1 client", unit: "/s", yardstick, ours: hop, target: null },
      { name: "the same through the desktop, 64 clients", unit: "/s", yardstick, ours: manyHop, target: null },
    ];
  },
};
