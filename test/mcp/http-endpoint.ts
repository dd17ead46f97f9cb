import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { SourceRelay } from "../cli/source-relay.ts";

export const TOKEN = "0123456789abcdef0123456789abcdef";

/** Headers without which a POST is none for the endpoint. */
const HEADERS = {
  authorization: `Bearer ${TOKEN}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** `mcp-server --transport http` of an installation, on a port that was free. */
export class HttpEndpoint implements AsyncDisposable {
  private constructor(
    readonly url: string,
    private readonly server: ReturnType<SourceRelay["start"]>,
  ) {}

  readonly authorization = HEADERS.authorization;

  static async of(relay: SourceRelay): Promise<HttpEndpoint> {
    const server = relay.start(["mcp-server", "--transport", "http", "--port", "0"], { env: { CLIO_RELAY_API_TOKEN: TOKEN } });
    let said = "";
    for await (const chunk of server.stderr) {
      said += new TextDecoder().decode(chunk);
      if (said.includes("\n")) break;
    }
    const url = /http:\S+/.exec(said)?.[0];
    if (url === undefined) throw new Error(`mcp-server said ${JSON.stringify(said)}`);
    return new HttpEndpoint(url, server);
  }

  async client(mode: "legacy" | "modern", capabilities: Record<string, unknown> = {}): Promise<Client> {
    const transport = new StreamableHTTPClientTransport(new URL(this.url), {
      requestInit: { headers: { authorization: `Bearer ${TOKEN}` } },
    });
    const versionNegotiation = { mode: mode === "legacy" ? ("legacy" as const) : { pin: "2026-07-28" } };
    const made = new Client({ name: "test", version: "1" }, { capabilities, versionNegotiation });
    await made.connect(transport);
    return made;
  }

  post(body: string, headers: Record<string, string> = {}, at = this.url): Promise<Response> {
    return fetch(at, { method: "POST", headers: { ...HEADERS, ...headers }, body });
  }

  /** A request of 2026-07-28 that declares the tasks extension. @param name what its Mcp-Name header says */
  call(method: string, params: Record<string, unknown>, name?: string, signal?: AbortSignal): Promise<Response> {
    return fetch(this.url, {
      method: "POST",
      headers: {
        ...HEADERS,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        ...(name === undefined ? {} : { "mcp-name": name }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }),
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.kill("SIGTERM");
    await this.server.exited;
  }
}

/** What a client of 2026-07-28 says of itself with each request. */
export const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
};

/** Messages of an event stream as they come. */
export async function* messagesOf(stream: Response): AsyncGenerator<{ readonly method: string; readonly params: Record<string, unknown> }> {
  const decoder = new TextDecoder();
  let held = "";
  for await (const chunk of stream.body ?? []) {
    const frames = (held + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n\n");
    held = frames.pop() ?? "";
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data !== undefined) yield JSON.parse(data);
    }
  }
}
