import type { ClusterEntry } from "../../config/cluster-entry.ts";

/** What the registration of a cluster's MCP server of JARVIS-CD is called, and, as a program, that which its worker is configured with. */
export const JARVIS_SERVER = "jarvis";

/** Members of a call's spec that name the MCP server of JARVIS-CD: the one that is registered, else the one that the worker is configured with. */
export function jarvisServer({ remote_mcp_servers }: Pick<ClusterEntry, "remote_mcp_servers">) {
  const registered = remote_mcp_servers?.[JARVIS_SERVER];
  if (registered?.enabled !== true) return { server: JARVIS_SERVER };
  const { command, args, env_from, contract, reuse } = registered;
  return { server: command, server_args: args, env_from, expected_registered_contract: contract, reuse };
}
