import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { relayServer, type ToldServer } from "../server.ts";
import type { McpService } from "../service.ts";

/** Sessions at a time: one more ends the one that was silent for longest. */
const SESSIONS = 256;
/** One without a request for so long ends, in milliseconds. */
const IDLE_MS = 3_600_000;
const LOOK_MS = 60_000;

const FIELD = "mcp-session-id";

interface Session {
  readonly server: ToldServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  lastUsed: number;
}

/** Clients of before 2026-07-28: each has a session, in which it hears of changes between its requests. */
export class Sessions {
  readonly #sessions = new Map<string, Session>();
  readonly #look: ReturnType<typeof setInterval>;

  constructor(private readonly service: McpService) {
    this.#look = setInterval(() => this.#endIdle(), LOOK_MS);
    this.#look.unref();
  }

  /** @param begins whether the request is the first of a session */
  async fetch(request: Request, parsedBody: unknown, begins: boolean): Promise<Response> {
    const id = request.headers.get(FIELD);
    if (id === null && begins) return this.#begin(request, parsedBody);
    if (id === null) return refusal(400, -32000, "Bad Request: Mcp-Session-Id header is required");
    const session = this.#sessions.get(id);
    if (session === undefined) return refusal(404, -32001, "Session not found");
    session.lastUsed = this.service.now();
    return session.transport.handleRequest(request, { parsedBody });
  }

  async #begin(request: Request, parsedBody: unknown): Promise<Response> {
    const server = relayServer(this.service, "legacy");
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => {
        this.#makeRoom();
        this.#sessions.set(id, { server, transport, lastUsed: this.service.now() });
      },
      onsessionclosed: (id) => {
        if (id !== undefined) this.#sessions.delete(id);
      },
    });
    await server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody });
    // A first request that was refused begins nothing.
    if (transport.sessionId === undefined) await server.close();
    return response;
  }

  #makeRoom(): void {
    if (this.#sessions.size < SESSIONS) return;
    const [oldest] = [...this.#sessions].sort(([, a], [, b]) => a.lastUsed - b.lastUsed);
    if (oldest !== undefined) this.#end(...oldest);
  }

  #endIdle(): void {
    for (const [id, session] of this.#sessions) if (this.service.now() - session.lastUsed > IDLE_MS) this.#end(id, session);
  }

  #end(id: string, { server }: Session): void {
    this.#sessions.delete(id);
    server.close().catch(this.service.onFault);
  }

  toolsAre(revision: string | null): void {
    for (const { server } of this.#sessions.values()) server.toolsAre(revision);
  }

  close(): void {
    clearInterval(this.#look);
    for (const [id, session] of this.#sessions) this.#end(id, session);
  }
}

const refusal = (status: number, code: number, message: string): Response =>
  Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status });
