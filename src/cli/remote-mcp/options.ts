import type { ClusterEntry } from "../../config/cluster-entry.ts";
import type { RemoteMcpServer } from "../../config/remote-mcp-server.ts";
import { RelayError } from "../../domain/errors.ts";
import { isId } from "../../domain/id.ts";
import { JARVIS_SERVER } from "../../mcp/jarvis/server.ts";
import { clusterName, type Reader } from "../values.ts";
import { required } from "../verb.ts";

const serverName: Reader<string> = {
  label: "SERVER",
  form: "the name of a registration (lower case letters, digits, - and _)",
  read: (given) => (isId(given) ? given : undefined),
  suggests: null,
};

/** Which registration is meant. */
export const REGISTRATION = {
  cluster: required(clusterName, "The cluster that the server is on"),
  name: required(serverName, "What the server is called here"),
} as const;

/** @param whenNone what to do where none is registered at all @throws RelayError not_found */
export function registered(entry: ClusterEntry, name: string, whenNone = registering(entry.name, name)): RemoteMcpServer {
  const servers = entry.remote_mcp_servers ?? {};
  if (Object.hasOwn(servers, name)) return servers[name]!;
  const known = Object.keys(servers).sort();
  throw new RelayError(
    "not_found",
    `no MCP server ${name} is registered on ${entry.name}`,
    { cluster: entry.name, server: name },
    known.length === 0 ? whenNone : `there are ${known.slice(0, 20).join(", ")}`,
  );
}

const registering = (cluster: string, name: string): string =>
  `clio-relay remote-mcp register --cluster ${cluster} --name ${name} --command ${name === JARVIS_SERVER ? `${JARVIS_SERVER} --allow-tool '*'` : "PROGRAM"}`;

/** The entry with other registrations; without the member where there is none. */
export function withServers(entry: ClusterEntry, servers: Readonly<Record<string, RemoteMcpServer>>): ClusterEntry {
  const { remote_mcp_servers: _before, ...rest } = entry;
  return (Object.keys(servers).length === 0 ? rest : { ...rest, remote_mcp_servers: { ...servers } }) as ClusterEntry;
}

/** The command that asks a server for its tools. */
export const refreshCommand = (cluster: string, name: string): string =>
  `clio-relay remote-mcp refresh --cluster ${cluster} --name ${name}`;
