/** The same tools/list as somebody else's, and one tool that answers at once, on standard input and output, with the SDK and nothing behind it: `bare-mcp-process.ts TOOLS`. */
import fs from "node:fs";
import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const [file = ""] = process.argv.slice(2);
const tools = file === "" ? [] : JSON.parse(fs.readFileSync(file, "utf8"));
const answer = { clusters: [], truncated: false };

serveStdio(() => {
  const server = new Server({ name: "bare", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", () => ({
    content: [{ type: "text" as const, text: JSON.stringify(answer) }],
    structuredContent: answer,
  }));
  return server;
});
