import { install } from "../installation.ts";
import { connectPlain, type PlainConnection } from "../plain-http.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareInsert } from "../yardsticks/bare-insert.ts";

const SPEC = { argv: ["python3", "train.py", "--epochs", "3"], workdir: "/" };

const ROUNDS = 3;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

const BODY = JSON.stringify({ cluster: "local", kind: "command", spec: SPEC });

type Submit = () => Promise<unknown>;

/** Submissions per second when each of the clients waits for its answer before it sends the next one. */
async function rate(clients: readonly Submit[], total: number): Promise<number> {
  for (let i = 0; i < 50; i++) await clients[i % clients.length]!();
  let left = total;
  const begin = performance.now();
  await Promise.all(
    clients.map(async (submit) => {
      while (left-- > 0) await submit();
    }),
  );
  return (total * 1_000) / (performance.now() - begin);
}

/** The same over connections of their own to a socket. */
async function rateAt(socketPath: string, route: string, clients: number, total: number): Promise<number> {
  const connections = await Promise.all(Array.from({ length: clients }, () => connectPlain(socketPath)));
  try {
    const submit = (connection: PlainConnection) => async () => {
      const { status, body } = await connection.post(route, BODY);
      if (status !== 201 || typeof JSON.parse(body).job_id !== "string") throw new Error(`the answer is ${status}: ${body.slice(0, 500)}`);
    };
    return await rate(connections.map(submit), total);
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** What it costs to be told that a job is safe. The worker is full, so that no job starts meanwhile. */
export const row: Row = {
  name: "submissions",
  async run(context: BenchContext): Promise<Result[]> {
    await using relay = await install(context, { CLIO_RELAY_ACTIVE_JOBS_MAX: "1000000" });
    for (let i = 0; i < 2; i++)
      await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["sleep", "1000"], workdir: "/" } });
    const count = Math.ceil(3_000 * context.scale);
    const worker = relay.paths.workerSocket("local");
    const desktop = relay.paths.desktopSocket;
    // In turns, so that whatever else the machine does meets them alike.
    const bare: number[] = [];
    const one: number[] = [];
    const many: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const { submissionsPerSecond, fsync } = bareInsert(context.directory, count);
      context.note(`fsync ${fsync.p50.toFixed(3)} ms p50`);
      bare.push(submissionsPerSecond);
      one.push(await rateAt(worker, "/jobs", 1, count));
      many.push(await rateAt(worker, "/jobs", 64, count * 2));
    }
    const yardstick = { name: "bare transactions", value: median(bare) };
    const typed = await rate([() => relay.worker.submit({ cluster: "local", kind: "command", spec: SPEC })], count);
    const hop = await rateAt(desktop, "/clusters/local/jobs", 1, count);
    const manyHop = await rateAt(desktop, "/clusters/local/jobs", 64, count * 2);
    const running = (await relay.worker.queue({ state: ["leased", "running"], scan_limit: 10 })).jobs;
    for (const job of running) await relay.worker.cancel(job.job_id);
    for (const job of running) await relay.worker.wait(job.job_id, { timeout_seconds: 30 });
    return [
      { name: "durable submissions, 1 client", unit: "/s", yardstick, ours: median(one), target: { ratioAtLeast: 0.5 } },
      { name: "durable submissions, 64 clients", unit: "/s", yardstick, ours: median(many), target: { ratioAtLeast: 1.5 } },
      { name: "the same by the typed client (fetch), 1 client", unit: "/s", yardstick, ours: typed, target: null },
      { name: "the same through the desktop, 1 client", unit: "/s", yardstick, ours: hop, target: null },
      { name: "the same through the desktop, 64 clients", unit: "/s", yardstick, ours: manyHop, target: null },
    ];
  },
};
