import { JARVIS_SERVER } from "../mcp/jarvis/server.ts";
import { REFRESH, REFRESH_DETAILS, refresh } from "./remote-mcp/refresh.ts";
import { defineVerb } from "./verb.ts";

export const verb = defineVerb({
  summary: "Ask the MCP server of JARVIS-CD on a cluster which tools it has",
  details: `As remote-mcp refresh with the name jarvis. ${REFRESH_DETAILS}`,
  positionals: {},
  flags: REFRESH,
  examples: [["jarvis-mcp-refresh --cluster c", "before its tools are shown, and when they may be others"]],
  run: (call) => refresh(call, JARVIS_SERVER),
});
