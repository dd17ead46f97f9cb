import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { MAIN, type SourceRelay } from "../cli/source-relay.ts";

export interface AgentOptions {
  readonly args?: readonly string[];
  /** The program, where it is not the source's. */
  readonly program?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The handshake of before 2026-07-28. */
  readonly legacy?: boolean;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/** A client of the protocol that has started `mcp-server` for itself. */
export class Agent implements AsyncDisposable {
  private constructor(readonly client: Client) {}

  static async of(
    relay: Pick<SourceRelay, "environment" | "directory">,
    { args = [], program = [process.execPath, MAIN], env = {}, legacy = false, capabilities = {} }: AgentOptions = {},
  ): Promise<Agent> {
    const [command = "", ...before] = program;
    const transport = new StdioClientTransport({
      command,
      args: [...before, "mcp-server", ...args],
      env: { ...relay.environment, ...env },
      cwd: relay.directory,
      stderr: "inherit",
    });
    const client = new Client(
      { name: "test", version: "1" },
      { capabilities, versionNegotiation: { mode: legacy ? "legacy" : { pin: "2026-07-28" } } },
    );
    await client.connect(transport);
    return new Agent(client);
  }

  /** What a tool found. The client has held it against the tool's schema, where it has listed the tools. */
  async ok<T = Record<string, unknown>>(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<T> {
    const answer = await this.client.callTool({ name, arguments: args });
    if (answer.isError === true) throw new Error(`${name}: ${JSON.stringify(answer.content)}`);
    return answer.structuredContent as T;
  }

  /** The problem that kept a tool from it. */
  async problem(name: string, args: Readonly<Record<string, unknown>> = {}): Promise<Record<string, unknown>> {
    const { isError, content } = await this.client.callTool({ name, arguments: args });
    if (isError !== true) throw new Error(`${name} did not fail`);
    const [first] = content;
    return JSON.parse(first?.type === "text" ? first.text : "") as Record<string, unknown>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}
