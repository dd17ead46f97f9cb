import { CALL, CALL_DETAILS, submitCall } from "./mcp-call-options.ts";
import { defineVerb } from "./verb.ts";

export const verb = defineVerb({
  summary: "Call the MCP server of JARVIS-CD on a cluster once",
  details: `That which is registered there as jarvis, else the one that the worker is configured with (CLIO_RELAY_JARVIS_MCP_COMMAND).\n\n${CALL_DETAILS}`,
  positionals: {},
  flags: CALL,
  examples: [
    [`jarvis-mcp-call --cluster c --tool jarvis_describe --arguments-json '{"target": "packages"}' --wait`, "which packages there are"],
  ],
  async run(call) {
    const { jarvisServer } = await import("../mcp/jarvis/server.ts");
    return submitCall(call, jarvisServer);
  },
});
