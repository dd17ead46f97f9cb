import { install, residentBytes } from "../installation.ts";
import { McpLines } from "../mcp-lines.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareMcp } from "../yardsticks/bare-mcp.ts";
import { type Latency, latencyOf } from "../yardsticks/latency.ts";

const MB = 1_000_000;
/** How long a server is left alone before its memory is read, in milliseconds. */
const IDLE_MS = 3_000;

async function timed(runs: number, work: () => Promise<unknown>): Promise<Latency> {
  const samples: number[] = [];
  for (let i = -Math.ceil(runs / 10); i < runs; i++) {
    const begin = performance.now();
    await work();
    if (i >= 0) samples.push(performance.now() - begin);
  }
  return latencyOf(samples);
}

async function starting(runs: number, command: readonly string[], env: Record<string, string>): Promise<Latency> {
  const samples: number[] = [];
  for (let i = -1; i < runs; i++) {
    await using server = await McpLines.start(command, env);
    if (i >= 0) samples.push(server.initialized);
  }
  return latencyOf(samples);
}

/** The MCP server that a client starts for itself: what it costs to start, to be asked for its tools, to be asked for a job, and to be kept. */
export const row: Row = {
  name: "mcp",
  async run(context: BenchContext): Promise<Result[]> {
    const calls = Math.ceil(2_000 * context.scale);
    const starts = Math.ceil(20 * context.scale);
    await using relay = await install(context);
    const command = [context.executable, "mcp-server"];
    await using server = await McpLines.start(command, relay.environment);
    const { tools } = (await server.request("tools/list", {})) as { tools: unknown[] };
    const bareCommand = await bareMcp(context.directory, context.bun, tools);
    const started = await starting(starts, command, relay.environment);
    const bareStarted = await starting(starts, bareCommand, relay.environment);

    const { job_id } = await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv: ["true"], workdir: "/" } });
    await relay.worker.wait(job_id, { timeout_seconds: 30 });
    await using bare = await McpLines.start(bareCommand, relay.environment);
    const bareCall = await timed(calls, () => bare.call("bare", { job_id }));
    const status = await timed(calls, () => server.call("relay_status", { job_id, cluster: "local" }));
    const clusters = await timed(calls, () => server.call("relay_list_clusters", {}));
    const bareListed = await timed(calls / 10, () => bare.request("tools/list", {}));
    const listed = await timed(calls / 10, () => server.request("tools/list", {}));

    await using idle = await McpLines.start(command, relay.environment);
    await idle.request("tools/list", {});
    await idle.call("relay_list_clusters", {});
    await Bun.sleep(IDLE_MS);
    const bareOf = (value: number) => ({ name: "bare server of the SDK", value });
    return [
      {
        name: "MCP: relay_status on stdio, p50",
        unit: "ms",
        yardstick: bareOf(bareCall.p50),
        ours: status.p50,
        target: { overYardstickAtMost: 3 },
      },
      { name: "the same, p99", unit: "ms", yardstick: bareOf(bareCall.p99), ours: status.p99, target: null },
      { name: "MCP: relay_list_clusters on stdio, p50", unit: "ms", yardstick: bareOf(bareCall.p50), ours: clusters.p50, target: null },
      { name: "MCP: tools/list on stdio, p50", unit: "ms", yardstick: bareOf(bareListed.p50), ours: listed.p50, target: { atMost: 50 } },
      {
        name: "MCP: spawn to initialize, p50",
        unit: "ms",
        yardstick: bareOf(bareStarted.p50),
        ours: started.p50,
        target: { atMost: 150 },
      },
      { name: "MCP: idle server, resident", unit: "MB", yardstick: null, ours: residentBytes(idle.pid) / MB, target: { atMost: 70 } },
    ];
  },
};
