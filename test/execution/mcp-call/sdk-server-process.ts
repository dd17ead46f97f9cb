/** A server of the SDK's, of 2026-07-28. */
import { inputRequired, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const FORM = { mode: "form", message: "your name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } };
const tool = (name: string) => ({
  name,
  inputSchema: { type: "object" as const, $defs: { x: { type: "string" } } },
  annotations: { readOnlyHint: true },
});

serveStdio(() => {
  const server = new Server({ name: "of-the-sdk", version: "2" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", async ({ params }) =>
    params?.cursor === undefined ? { tools: [tool("ask")], nextCursor: "more" } : { tools: [tool("steps")] },
  );
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    if (params.name === "ask") {
      const { inputResponses } = ctx.mcpReq;
      if (inputResponses === undefined)
        return inputRequired({ inputRequests: { who: { method: "elicitation/create", params: FORM } as never } });
      return { content: [{ type: "text", text: JSON.stringify(inputResponses) }] };
    }
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken !== undefined)
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2, message: "half" } });
    return { content: [{ type: "text", text: "done" }], structuredContent: { done: true } };
  });
  return server;
});
