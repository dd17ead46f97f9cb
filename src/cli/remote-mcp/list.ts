import { type DiscoveredServer, readRemoteMcpCache } from "../../config/remote-mcp-cache.ts";
import { executionFingerprint } from "../../config/remote-mcp-server.ts";
import { EXIT } from "../../domain/errors.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { clusterName } from "../values.ts";
import { defineVerb, option } from "../verb.ts";

export const verb = defineVerb({
  summary: "List the MCP servers on clusters that are registered",
  details: "Asks no cluster: what is known of their tools is what the last refresh found.",
  positionals: {},
  flags: { cluster: option(clusterName, "Only those of this cluster", "c") },
  examples: [["remote-mcp list", "names, commands, and until when their tools are shown"]],
  async run({ flags, io, json, relay }) {
    const { hiddenServer } = await import("../../mcp/federation/projection.ts");
    const entries = flags.cluster === undefined ? await relay.clusters() : [await relay.clusterEntry(flags.cluster)];
    const { entries: known } = readRemoteMcpCache(relay.paths, io.env);
    const now = io.clock.now();
    const servers = entries.flatMap((entry) =>
      Object.entries(entry.remote_mcp_servers ?? {})
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, registration]) => {
          const found = known.find((one) => one.cluster === entry.name && one.server === name) ?? null;
          const hidden =
            found === null
              ? null
              : hiddenServer(entry, registration, found, registration.profiles.includes("user") ? "user" : "admin", now);
          return {
            cluster: entry.name,
            server_name: name,
            registration,
            execution_fingerprint: executionFingerprint(registration),
            discovery: found === null ? null : summaryOf(found),
            hidden: found === null ? "not_discovered" : (hidden?.[0] ?? null),
          };
        }),
    );
    if (json) await printJson(io.stdout, { servers });
    else {
      await printTable(
        io.stdout,
        styleFor(io.stdout, io.env),
        ["CLUSTER", "NAME", "PROFILES", "TOOLS", "STATE", "COMMAND"],
        servers.map(({ cluster, server_name, registration, discovery, hidden }) => [
          ...[cluster, server_name, registration.profiles.join(",")],
          `${registration.allow_tools.includes("*") ? "all" : registration.allow_tools.length} of ${discovery?.tools ?? "?"}`,
          registration.enabled ? (hidden ?? `until ${discovery?.expires_at}`) : "disabled",
          [registration.command, ...registration.args].join(" "),
        ]),
      );
      if (servers.length === 0) await io.stderr.write("no MCP server on a cluster is registered yet: clio-relay remote-mcp register\n");
    }
    return EXIT.ok;
  },
});

/** What is known of a server, without its tools. */
function summaryOf({ tools, accepted: _accepted, cluster: _cluster, server: _server, ...rest }: DiscoveredServer) {
  return { ...rest, tools: tools.length };
}
