import type { ClusterClient } from "../../src/api/client.ts";
import type { JobSubmissionInput } from "../../src/domain/job.ts";
import { install } from "../installation.ts";
import { McpLines } from "../mcp-lines.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { bareMcp } from "../yardsticks/bare-mcp.ts";
import { type Latency, latencyOf } from "../yardsticks/latency.ts";

const TOOL = "bare";

async function timed(runs: number, work: () => Promise<unknown>): Promise<Latency> {
  const samples: number[] = [];
  for (let i = -2; i < runs; i++) {
    const begin = performance.now();
    await work();
    if (i >= 0) samples.push(performance.now() - begin);
  }
  return latencyOf(samples);
}

/** A call as a job, until its result is there. */
async function call(cluster: ClusterClient, spec: Record<string, unknown>): Promise<void> {
  const { job_id } = await cluster.submit({ cluster: "local", kind: "mcp_call", spec } as JobSubmissionInput);
  const { state, outcome } = await cluster.wait(job_id, { timeout_seconds: 60 });
  if (state !== "succeeded") throw new Error(`a call ended as ${state}: ${outcome?.message}`);
  const { artifacts } = await cluster.artifacts(job_id);
  await (await cluster.artifactContent(artifacts.find(({ kind }) => kind === "mcp_result")!.artifact_id)).text();
}

/** A call of an MCP server on the cluster, as a job, from the desktop and back: of a server that runs, and of one that has to be started. */
export const row: Row = {
  name: "mcp-call",
  async run(context: BenchContext): Promise<Result[]> {
    await using relay = await install(context);
    const command = await bareMcp(context.directory, context.bun, [{ name: TOOL, inputSchema: { type: "object" } }]);
    const [server, ...server_args] = command;
    const spec = { server, server_args, operation: "tools/call", tool: TOOL, arguments: { job_id: "job_1" } };
    const bareCold = await timed(Math.ceil(20 * context.scale), async () => {
      await using started = await McpLines.start(command, relay.environment);
      await started.call(TOOL, { job_id: "job_1" });
    });
    await using bare = await McpLines.start(command, relay.environment);
    const bareWarm = await timed(Math.ceil(300 * context.scale), () => bare.call(TOOL, { job_id: "job_1" }));
    const warm = await timed(Math.ceil(300 * context.scale), () => call(relay.desktop, { ...spec, reuse: {} }));
    const cold = await timed(Math.ceil(20 * context.scale), () => call(relay.desktop, spec));
    const yardstick = (value: number) => ({ name: "bare server of the SDK, by hand", value });
    return [
      {
        name: "MCP call on a cluster, kept server, p50",
        unit: "ms",
        yardstick: yardstick(bareWarm.p50),
        ours: warm.p50,
        target: { atMost: 15 },
      },
      { name: "the same, p99", unit: "ms", yardstick: yardstick(bareWarm.p99), ours: warm.p99, target: null },
      {
        name: "MCP call on a cluster, server to be started, p50",
        unit: "ms",
        yardstick: yardstick(bareCold.p50),
        ours: cold.p50,
        target: { overYardstickAtMost: 100 },
      },
    ];
  },
};
