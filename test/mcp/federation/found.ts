import { type ClusterEntry, DEFAULT_CAPACITY, routeRevision } from "../../../src/config/cluster-entry.ts";
import { type DiscoveredServer, definitionDigest, schemaDigest, type ToolDefinition } from "../../../src/config/remote-mcp-cache.ts";
import { executionFingerprint, type RemoteMcpServer } from "../../../src/config/remote-mcp-server.ts";
import type { ServerArtifact } from "../../../src/domain/mcp-call.ts";

/** 2026-01-02, in milliseconds. */
export const NOW = Date.UTC(2026, 0, 2);
export const IMMUTABLE: ServerArtifact = {
  ...{ immutable: true, kind: "executable", digest: "d".repeat(64), path: "/opt/science-mcp", name: null, version: null, files: 1 },
};
export const MUTABLE: ServerArtifact = { immutable: false, cause: "launcher", detail: "npx fetches what it runs", path: null };

export const registration = (more: Partial<RemoteMcpServer> = {}): RemoteMcpServer => ({
  ...{ command: "science-mcp", args: [], env_from: {}, namespace: null, contract: null, allow_tools: ["*"], profiles: ["user"] },
  ...{ schema_cache_ttl_seconds: 86_400, call_timeout_seconds: 300, enabled: true, reuse: null },
  ...more,
});

export const entry = (name: string, servers: Readonly<Record<string, RemoteMcpServer>> = { science: registration() }): ClusterEntry => ({
  ...{ name, mode: "local", env_setup: null, worker_capacity: DEFAULT_CAPACITY, remote_mcp_servers: servers },
});

export const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: `What ${name} does.`,
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false },
  ...more,
});

/** What a refresh of a server of an entry has found. */
export function found(
  of: ClusterEntry,
  server: string,
  tools: readonly ToolDefinition[],
  more: Partial<DiscoveredServer> = {},
): DiscoveredServer {
  const its = of.remote_mcp_servers![server]!;
  return {
    cluster: of.name,
    server,
    execution_fingerprint: executionFingerprint(its),
    route_revision: routeRevision(of),
    discovered_at: new Date(NOW - 1_000).toISOString(),
    expires_at: new Date(NOW + 86_400_000).toISOString(),
    schema_digest: schemaDigest(tools),
    tools: [...tools],
    omitted_tools: 0,
    accepted: Object.fromEntries(tools.map((one) => [one.name, definitionDigest(one)])),
    provenance: {
      ...{ job_id: `job_${"1".repeat(32)}`, artifact_id: "artifact_1", sha256: "e".repeat(64), protocol_version: "2026-07-28" },
      ...{ server_name: "science", server_version: "1.4.0", server_artifact: IMMUTABLE },
    },
    ...more,
  };
}
