import { clusterNotFound } from "../../config/clusters.ts";
import { updateRemoteMcpCache } from "../../config/remote-mcp-cache.ts";
import { EXIT } from "../../domain/errors.ts";
import { printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { REGISTRATION, registered, withServers } from "./options.ts";

export const verb = defineVerb({
  summary: "Offer agents the tools of an MCP server no longer",
  details: "Forgets the registration, and what is known and accepted of its tools. Calls that are under way go on; what they left stays.",
  positionals: {},
  flags: REGISTRATION,
  examples: [["remote-mcp unregister --cluster c --name science", "take its tools away"]],
  async run({ flags: { cluster, name }, io, json, relay }) {
    const registration = registered(await relay.clusterEntry(cluster), name, "clio-relay remote-mcp list");
    await relay.desktop.changeCluster(cluster, (entry) => {
      if (entry === null) throw clusterNotFound(cluster, []);
      const { [name]: _gone, ...rest } = entry.remote_mcp_servers ?? {};
      return withServers(entry, rest);
    });
    await updateRemoteMcpCache(relay.paths, io.env, (entries) => {
      const left = entries.filter((one) => one.cluster !== cluster || one.server !== name);
      return left.length === entries.length ? entries : left;
    });
    if (json) await printJson(io.stdout, { cluster, server_name: name, registration });
    else await io.stdout.write(`${name} on ${cluster} is registered no longer\n`);
    return EXIT.ok;
  },
});
