import { afterAll, beforeAll, expect, test } from "bun:test";
import { initialized, MAIN, type SourceRelay } from "../cli/source-relay.ts";
import { mcpProgram } from "../rigs/mcp-programs/programs.ts";
import { describeWith } from "../runner/components.ts";
import { USER_TOOLS } from "./tool-names.ts";

/** What is used of the first SDK's client, whose types want another zod than ours. */
interface OldClient {
  connect(transport: unknown): Promise<void>;
  listTools(): Promise<{ tools: { name: string }[] }>;
  callTool(call: { name: string; arguments: unknown }): Promise<{ isError?: boolean; structuredContent?: Record<string, unknown> }>;
  readResource(of: { uri: string }): Promise<{ contents: { text?: string }[] }>;
  listPrompts(): Promise<{ prompts: { name: string }[] }>;
  getPrompt(of: { name: string; arguments: Record<string, string> }): Promise<{ messages: { content: { text?: string } }[] }>;
  getServerVersion(): { name: string } | undefined;
  close(): Promise<void>;
}

describeWith("mcp-programs", "clients of others", () => {
  let relay: SourceRelay;

  beforeAll(async () => {
    relay = await initialized();
    await relay.ok("cluster", "add", "--name", "local", "--agent-commands");
    await relay.ok("worker", "start", "--cluster", "local");
  });

  afterAll(async () => {
    await relay?.[Symbol.asyncDispose]();
  });

  test("the first SDK lists, calls, reads and gets, and holds each answer against its schema", async () => {
    const sdk = (...names: string[]) => mcpProgram("@modelcontextprotocol", "sdk", "dist", "esm", "client", ...names);
    const { Client } = (await import(sdk("index.js"))) as { Client: new (info: object, options: object) => OldClient };
    const { StdioClientTransport } = (await import(sdk("stdio.js"))) as { StdioClientTransport: new (options: object) => unknown };
    const client = new Client({ name: "old", version: "1" }, { capabilities: {} });
    const transport = {
      command: process.execPath,
      args: [MAIN, "mcp-server"],
      env: relay.environment,
      cwd: relay.directory,
      stderr: "inherit",
    };
    await client.connect(new StdioClientTransport(transport));
    expect(client.getServerVersion()?.name).toBe("clio-relay");
    expect((await client.listTools()).tools.map(({ name }) => name).sort()).toEqual(USER_TOOLS.toSorted());
    const submitted = await client.callTool({
      name: "relay_submit_command",
      arguments: { cluster: "local", argv: ["echo", "old"], wait_for_terminal: true },
    });
    expect(submitted.structuredContent).toMatchObject({ state: "succeeded" });
    const uri = `relay://local/jobs/${submitted.structuredContent?.["job_id"] as string}/log/stdout`;
    expect((await client.readResource({ uri })).contents).toMatchObject([{ text: "old\n" }]);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["run_pipeline", "diagnose_job"]);
    const { messages } = await client.getPrompt({ name: "diagnose_job", arguments: { job_id: 'x"\n\u001b[2J' } });
    // What somebody gave is a word in quotes, and nothing else.
    expect(messages[0]?.content.text).toContain(String.raw`the job "x\"\n\u001b[2J".`);
    await client.close();
  });

  for (const era of ["modern", "legacy"] as const) {
    test(`the Inspector calls a tool (${era})`, async () => {
      const inspector = mcpProgram("@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js");
      // It hands on what it is told to, and nothing else of its own variables.
      const env = ["-e", `CLIO_RELAY_HOME=${relay.home}`];
      const command = [process.execPath, inspector, "--cli", process.execPath, MAIN, "mcp-server", ...env, "--protocol-era", era];
      const child = Bun.spawn([...command, "--method", "tools/call", "--tool-name", "relay_list_clusters"], {
        cwd: relay.directory,
        env: relay.environment,
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      expect([code, code === 0 ? "" : err]).toEqual([0, ""]);
      expect(out).toContain("route_revision");
      expect(out).toContain("local");
    });
  }
});
