import path from "node:path";
import { type ClusterEntry, routeRevision } from "../../src/config/cluster-entry.ts";
import { readEnvironment } from "../../src/config/environment.ts";
import { definitionDigest, schemaDigest, type ToolDefinition, updateRemoteMcpCache, withEntry } from "../../src/config/remote-mcp-cache.ts";
import { executionFingerprint } from "../../src/config/remote-mcp-server.ts";
import { install } from "../installation.ts";
import { McpLines } from "../mcp-lines.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { type Latency, latencyOf } from "../yardsticks/latency.ts";

const TOOLS = 500;

const tools = Array.from(
  { length: TOOLS },
  (_, n): ToolDefinition => ({
    name: `inspect_data_set_${n}`,
    description: "Inspects a data set, and says what is in it. ".repeat(6),
    inputSchema: {
      type: "object",
      properties: { path: { type: "string", description: "where it lies" }, depth: { type: "integer", minimum: 1 } },
      required: ["path"],
      additionalProperties: false,
    },
  }),
);

/** What a refresh of the registered server would have found. */
function found(entry: ClusterEntry) {
  const [[server, registration] = ["", undefined]] = Object.entries(entry.remote_mcp_servers ?? {});
  const digest = "0".repeat(64);
  return {
    ...{ cluster: entry.name, server, tools, omitted_tools: 0, schema_digest: schemaDigest(tools) },
    execution_fingerprint: executionFingerprint(registration!),
    route_revision: routeRevision(entry),
    discovered_at: new Date().toISOString(),
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
    accepted: Object.fromEntries(tools.map((tool) => [tool.name, definitionDigest(tool)])),
    provenance: {
      ...{ job_id: `job_${"0".repeat(32)}`, artifact_id: "artifact_0", sha256: digest },
      ...{ protocol_version: null, server_name: null, server_version: null },
      server_artifact: {
        immutable: true,
        kind: "executable",
        digest,
        path: "/opt/science-mcp",
        name: null,
        version: null,
        files: 1,
      } as const,
    },
  };
}

async function timed(runs: number, work: () => Promise<unknown>): Promise<Latency> {
  const samples: number[] = [];
  for (let i = -2; i < runs; i++) {
    const begin = performance.now();
    await work();
    if (i >= 0) samples.push(performance.now() - begin);
  }
  return latencyOf(samples);
}

/** The list of tools where most of it are those of servers on clusters: first, later, and of a cluster whose worker is dead. */
export const row: Row = {
  name: "mcp-federated",
  async run(context: BenchContext): Promise<Result[]> {
    const runs = Math.ceil(200 * context.scale);
    await using relay = await install(context);
    const register = ["--cluster", "local", "--name", "science", "--command", "science-mcp", "--allow-tool", "*", "--profile", "user"];
    await relay.run("remote-mcp", "register", ...register);
    const { route_revision: _route, ...entry } = JSON.parse(await relay.run("cluster", "show", "local", "--json")) as ClusterEntry & {
      route_revision: string;
    };
    const env = readEnvironment(relay.environment);
    await updateRemoteMcpCache(relay.paths, env, (entries) => withEntry(entries, found(entry as ClusterEntry)));
    const command = [context.executable, "mcp-server"];
    const list = async (server: McpLines) => {
      const { tools: listed } = (await server.request("tools/list", {})) as { tools: { name: string }[] };
      const there = listed.filter(({ name }) => name.startsWith("remote_science_")).length;
      if (there !== TOOLS) throw new Error(`${there} tools of ${path.basename(relay.paths.remoteMcpCacheFile)} are listed`);
    };
    const first: number[] = [];
    for (let i = 0; i < Math.ceil(10 * context.scale); i++) {
      await using server = await McpLines.start(command, relay.environment);
      const begin = performance.now();
      await list(server);
      first.push(performance.now() - begin);
    }
    await using server = await McpLines.start(command, relay.environment);
    const later = await timed(runs, () => list(server));
    process.kill(relay.workerPid, "SIGKILL");
    const dead = await timed(runs, () => list(server));
    return [
      { name: `MCP: tools/list with ${TOOLS} remote tools, p50`, unit: "ms", yardstick: null, ours: later.p50, target: { atMost: 50 } },
      { name: "the same with a dead worker, p50", unit: "ms", yardstick: null, ours: dead.p50, target: { atMost: 50 } },
      { name: "the first of a server that was just started, p50", unit: "ms", yardstick: null, ours: latencyOf(first).p50, target: null },
    ];
  },
};
