import { expect, test } from "bun:test";
import path from "node:path";
import { initialized } from "../cli/source-relay.ts";
import { fastMcp } from "../rigs/fastmcp/client.ts";
import { describeWith } from "../runner/components.ts";
import { Agent } from "./agent.ts";

const SERVER = path.resolve(import.meta.dir, "../rigs/fastmcp/server.py");
const ADDS = ["--cluster", "local", "--name", "adds"] as const;

describeWith("fastmcp", "a server made with FastMCP", () => {
  test("its tools are an agent's, with what it says of them, and answer as they do there", async () => {
    await using relay = await initialized();
    await relay.ok("worker", "start", "--cluster", "local");
    const command = ["--command", fastMcp.python(), `--arg=${SERVER}`, "--allow-tool", "add", "--allow-tool", "fails"];
    await relay.ok("remote-mcp", "register", ...ADDS, ...command, "--reuse");
    const found = await relay.json("remote-mcp", "refresh", ...ADDS);
    expect(found).toMatchObject({ cache_entry: { tools: [{ name: "add" }, { name: "steps" }, { name: "fails" }] } });
    await using agent = await Agent.of(relay, { args: ["--profile", "admin"] });
    const { tools } = await agent.client.listTools();
    const shown = tools.filter(({ name }) => name.startsWith("remote_"));
    expect(shown.map(({ name }) => name)).toEqual(["remote_adds_add", "remote_adds_fails"]);
    expect(shown[0]).toMatchObject({ annotations: { readOnlyHint: true }, description: expect.stringContaining("Adds two numbers.") });
    // Where the arguments are, its schema decides.
    const context = await agent.ok<{ virtual_remote_tools: { name: string; arguments: string }[] }>("relay_remote_mcp_context");
    const forms = new Map(context.virtual_remote_tools.map((tool) => [tool.name, tool.arguments]));
    const call = (name: string, given: Record<string, unknown>) => {
      const args = { cluster: "local", ...(forms.get(name) === "flat" ? given : { arguments: given }) };
      return agent.client.callTool({ name, arguments: args });
    };
    expect(await call("remote_adds_add", { a: 2, b: 3 })).toMatchObject({
      isError: false,
      content: [{ type: "text", text: "5" }, {}],
      structuredContent: { state: "succeeded", mcp_result: { delivery: "inline", structured_result: { result: 5 } } },
    });
    expect(await call("remote_adds_fails", {})).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("it broke") }, {}],
    });
  });
});
