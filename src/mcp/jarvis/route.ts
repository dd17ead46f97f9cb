import { allows } from "../../config/remote-mcp-server.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Place } from "../clusters.ts";
import type { Route } from "../federation/federated.ts";
import type { ToolCall } from "../tool.ts";
import { JARVIS_SERVER } from "./server.ts";

/** How a tool of JARVIS-CD is served: by its MCP server; null: by what the worker does with its command line. */
export interface JarvisRoute {
  readonly place: Place;
  readonly server: { readonly route: Route; readonly revision: string } | null;
}

/**
 * Where a tool of JARVIS-CD is to be had on a cluster.
 *
 * @throws RelayError cluster_not_found; engine_unavailable where its server is registered, and has no such tool that may be called
 */
export async function jarvisRoute(tool: string, cluster: string, call: ToolCall): Promise<JarvisRoute> {
  const place = await call.clusters.named(cluster, call.signal);
  const registration = place.entry.remote_mcp_servers?.[JARVIS_SERVER];
  const meant = registration?.enabled === true && (call.profile === "admin" || registration.profiles.includes(call.profile));
  if (!meant) return { place, server: null };
  const { projection, revision } = await call.remote();
  for (const { definition, routes } of projection.tools) {
    const route = routes.get(cluster);
    if (definition.name === tool && route?.server === JARVIS_SERVER) return { place, server: { route, revision } };
  }
  const issue = projection.issues.find(
    (one) => one.cluster === cluster && one.server === JARVIS_SERVER && (one.tool === null || one.tool === tool),
  );
  const missing = { reason: "tool_missing", message: "the server has no tool of that name" };
  const why = issue ?? (allows(registration, tool) ? missing : { reason: "tool_not_allowed", message: "nobody has allowed it" });
  throw new RelayError(
    "engine_unavailable",
    `the MCP server of JARVIS-CD on ${cluster} has no ${tool} that may be called: ${why.message}`,
    { cluster, cause: why.reason },
    remedyOf(why.reason, tool, cluster),
  );
}

function remedyOf(reason: string, tool: string, cluster: string): string {
  const of = `--cluster ${cluster} --name ${JARVIS_SERVER}`;
  if (reason === "tool_not_allowed")
    return `clio-relay remote-mcp register ${of} --replace --allow-tool ${tool}, with what was given before`;
  return `clio-relay remote-mcp refresh ${of}${reason === "definition_changed" ? " --accept" : ""}`;
}

/** What only the MCP server of JARVIS-CD can do. @param what as a clause: `making a pipeline` */
export const needsServer = (cluster: string, what: string): RelayError =>
  new RelayError(
    "engine_unavailable",
    `${what} is not available on ${cluster}: there is no MCP server of JARVIS-CD registered, and its command line is used for runs only`,
    { cluster, cause: "jarvis_mcp_unregistered", available: ["jarvis_run", "jarvis_get_execution"] },
    `clio-relay remote-mcp register --cluster ${cluster} --name ${JARVIS_SERVER} --command PROGRAM --allow-tool '*'`,
  );
