import { createMcpHandler, isInitializeRequest, isLegacyRequest } from "@modelcontextprotocol/server";
import { JSON_BOUNDS, roundedArgument, tooMuch } from "../json-bounds.ts";
import { isListen, listening, type Message, type MessageId } from "../listen.ts";
import { relayServer } from "../server.ts";
import type { McpService } from "../service.ts";
import { live } from "./live-stream.ts";
import { Sessions } from "./sessions.ts";
import { withSubscription } from "./subscription-stream.ts";

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;
const NAME = "mcp-name";
const TOO_LARGE = -32055;

/** Streamable HTTP: requests of 2026-07-28, each by itself, and sessions of older clients, at one place. */
export interface HttpEndpoint {
  fetch(request: Request): Promise<Response>;
  /** Tell every client that has another list. @see McpService.watchTools */
  toolsAre(revision: string | null, isOther: boolean): void;
  close(): Promise<void>;
}

export function httpEndpoint(service: McpService): HttpEndpoint {
  const modern = createMcpHandler(({ era }) => relayServer(service, era), {
    legacy: "reject",
    // Whatever a client did wrong is in its answer.
    onerror: () => undefined,
  });
  const sessions = new Sessions(service);
  const answer = async (request: Request): Promise<Response> => {
    const post = request.method === "POST";
    const read = post ? await readMessage(request) : { parsed: undefined };
    if ("refused" in read) return read.refused;
    const { parsed } = read;
    const bare = new Request(request.url, { method: request.method, headers: request.headers, signal: request.signal });
    if (!post || (await isLegacyRequest(bare, parsed))) return sessions.fetch(bare, parsed, isInitializeRequest(parsed));
    const message = parsed as Message;
    nameTask(bare.headers, message);
    const wanted = isListen(message) ? await listening(service, message, request.signal) : null;
    if (wanted !== null && "refused" in wanted) return Response.json(wanted.refused, { status: 400 });
    const response = await modern.fetch(bare, { parsedBody: parsed });
    return wanted === null ? response : withSubscription(response, wanted);
  };
  return {
    fetch: async (request) => live(await answer(request)),
    toolsAre(revision, isOther) {
      // Of these clients nobody knows which list they have.
      if (isOther) modern.notify.toolsChanged();
      sessions.toolsAre(revision);
    },
    async close() {
      sessions.close();
      await modern.close();
      service.close();
    },
  };
}

/** The body, bounded before it is parsed. */
async function readMessage(request: Request): Promise<{ readonly parsed: unknown } | { readonly refused: Response }> {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers.get("content-type") ?? "")) {
    return { refused: refusal(415, -32000, "Unsupported Media Type: Content-Type must be application/json") };
  }
  const bytes = await bodyWithin(request, JSON_BOUNDS.messageBytes);
  if (bytes === null) return { refused: refusal(413, TOO_LARGE, `a message has at most ${JSON_BOUNDS.messageBytes} bytes`) };
  const excess = tooMuch(bytes);
  if (excess !== null) return { refused: refusal(400, INVALID_REQUEST, excess) };
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const parsed: unknown = JSON.parse(text);
    if (Array.isArray(parsed)) return { refused: refusal(400, INVALID_REQUEST, "batches are not taken") };
    if (parsed === null || typeof parsed !== "object")
      return { refused: refusal(400, INVALID_REQUEST, "this is no message of JSON-RPC 2.0") };
    const rounded = roundedArgument(parsed, text);
    return rounded === null ? { parsed } : { refused: refusal(200, INVALID_PARAMS, rounded, (parsed as Message).id) };
  } catch {
    return { refused: refusal(400, PARSE_ERROR, "the body is no JSON in UTF-8") };
  }
}

/** @returns null where it is more */
async function bodyWithin(request: Request, max: number): Promise<Uint8Array | null> {
  if (Number(request.headers.get("content-length") ?? 0) > max) return null;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += (chunk as Uint8Array).length;
    if (size > max) return null;
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks);
}

const OF_TASKS: ReadonlySet<string> = new Set(["tasks/get", "tasks/update", "tasks/cancel"]);

/**
 * Requests about a task name it in a header, too, for whoever routes them (SEP-2663, Routing Headers), and the SDK refuses those that name another one, or none. Nobody routes
 * here: those that name none, as clients in use send them (fastmcp-tasks 4.1.4), are taken.
 */
function nameTask(headers: Headers, { method, params }: Message): void {
  const id = params?.["taskId"];
  if (method === undefined || !OF_TASKS.has(method) || headers.has(NAME)) return;
  if (typeof id === "string" && /^[\x21-\x7e]{1,256}$/.test(id)) headers.set(NAME, id);
}

const refusal = (status: number, code: number, message: string, id: MessageId | null = null): Response =>
  Response.json({ jsonrpc: "2.0", error: { code, message }, id }, { status });
