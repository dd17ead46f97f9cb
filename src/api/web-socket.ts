import type { Server, ServerWebSocket, WebSocketHandler } from "bun";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { flag } from "../domain/query.ts";
import { Bell } from "../lib/waiting/bell.ts";
import { jsonAnswer } from "./client/json-answer.ts";
import { readSse, type SseMessage } from "./client/sse-reader.ts";
import { CREDENTIALS } from "./listener/bearer.ts";
import { problemResponse } from "./problem.ts";

/** How long a client may leave what it was sent before it is cut, in milliseconds. */
const STALLED_MS = 60_000;
/** Bytes that may wait for a client before more is read for it. */
const AHEAD_BYTES = 64 * 1024;
/** Longest message of a client; what it says is read over. */
const MESSAGE_MAX = 4 * 1024;
/** Longest reason of a close frame in bytes (RFC 6455, section 5.5). */
export const CLOSE_REASON_MAX = 123;

/** Close codes (RFC 6455, section 7.4.1). */
export const CLOSE = { done: 1000, goingAway: 1001, refused: 1008 } as const;

/** Whether a request is one for a WebSocket of ours. */
export const asksForWebSocket = (method: string, target: string, upgrade: string | null): boolean =>
  method === "GET" && upgrade?.trim().toLowerCase() === "websocket" && /^[^?]*\/ws(?:\?|$)/.test(target);

/** The token that such a request carries as a parameter; null where it carries none. */
export function tokenParameter(target: string): string | null {
  const at = target.indexOf("?");
  const token = at < 0 ? null : new URLSearchParams(target.slice(at)).get("token");
  return token !== null && /^[\x21-\x7e]+$/.test(token) ? token : null;
}

/** What a server of Bun needs. */
export interface WebServer {
  fetch(request: Request, server: Server<Follower>): Response | Promise<Response | undefined>;
  readonly websocket: WebSocketHandler<Follower>;
  /** End the WebSockets that there are. */
  close(): void;
}

export interface WebSocketOptions {
  readonly stalledMs?: number;
}

/**
 * A server that answers WebSockets besides the requests of an app. A WebSocket is an event stream in other framing: the request is made of the app again, with `/sse` for
 * `/ws` at its end, and what it streams is sent on. So every rule of the app holds for both, and nobody behind it has to know WebSockets.
 */
export function withWebSockets(
  answer: (request: Request) => Response | Promise<Response>,
  { stalledMs = STALLED_MS }: WebSocketOptions = {},
): WebServer {
  const open = new Set<Follower>();
  return {
    fetch(request, server) {
      if (request.method !== "GET" || !asksForWebSocket("GET", request.url, request.headers.get("upgrade"))) return answer(request);
      return upgrade(request, server, answer, stalledMs);
    },
    websocket: {
      data: undefined as unknown as Follower,
      open(socket) {
        open.add(socket.data);
        void socket.data.run(socket);
      },
      message: () => undefined,
      drain: (socket) => socket.data.drained(),
      close(socket) {
        open.delete(socket.data);
        socket.data.gone();
      },
      maxPayloadLength: MESSAGE_MAX,
      perMessageDeflate: false,
      // Whoever answers no ping for so many seconds is gone.
      idleTimeout: 120,
      sendPings: true,
    },
    close() {
      for (const follower of open) follower.end(CLOSE.goingAway, "shutting_down");
    },
  };
}

async function upgrade(
  request: Request,
  server: Server<Follower>,
  answer: (request: Request) => Response | Promise<Response>,
  stalledMs: number,
): Promise<Response | undefined> {
  const left = new AbortController();
  const response = await answer(eventStreamRequest(request, left.signal));
  const version = response.headers.get("clio-relay-version");
  const data = new Follower(await sourceOf(response), asksForReplay(request.url), left, stalledMs);
  if (server.upgrade(request, { data, headers: version === null ? {} : { "clio-relay-version": version } })) return undefined;
  data.gone();
  return problemResponse(new RelayError("http_request_malformed", "the request for a WebSocket is not well-formed"));
}

/** Whether a stream is to end with what there is. The stream's own route has refused what is neither yes nor no. */
const asksForReplay = (url: string): boolean => {
  const asked = v.safeParse(flag, new URL(url).searchParams.get("stop_after_replay"));
  return asked.success && asked.output;
};

/** Fields of the connection, and of the other protocol. */
const NOT_FOR_THE_STREAM = /^(?:connection|upgrade|sec-websocket-.*)$/;

function eventStreamRequest(request: Request, signal: AbortSignal): Request {
  const url = new URL(request.url);
  const token = tokenParameter(url.pathname + url.search);
  if (url.searchParams.has("token")) url.searchParams.delete("token");
  url.pathname = url.pathname.replace(/\/ws$/, "/sse");
  const headers = new Headers({ accept: "text/event-stream" });
  request.headers.forEach((value, name) => {
    if (!NOT_FOR_THE_STREAM.test(name) && name !== "accept") headers.set(name, value);
  });
  if (token !== null && !CREDENTIALS.some((name) => headers.has(name))) headers.set("authorization", `Bearer ${token}`);
  return new Request(url.href, { headers, signal });
}

/** What is to be sent on, or why nothing is. */
type Source = { readonly body: ReadableStream<Uint8Array> } | { readonly refusal: string };

async function sourceOf(response: Response): Promise<Source> {
  const events = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (response.ok && events && response.body !== null) return { body: response.body };
  const problem = (await jsonAnswer(response).catch(() => null)) as { reason?: unknown } | null;
  return { refusal: typeof problem?.reason === "string" ? problem.reason : "internal_error" };
}

/** One WebSocket's client, and what it follows. */
class Follower {
  readonly #room = new Bell();
  #socket: ServerWebSocket<Follower> | null = null;
  #over = false;

  constructor(
    private readonly source: Source,
    /** Whether the stream may end where the job has not. */
    private readonly replay: boolean,
    private readonly left: AbortController,
    private readonly stalledMs: number,
  ) {}

  async run(socket: ServerWebSocket<Follower>): Promise<void> {
    this.#socket = socket;
    if ("refusal" in this.source) return this.end(CLOSE.refused, this.source.refusal);
    let last = "";
    try {
      for await (const message of readSse(this.source.body)) {
        if (!(await this.#send(message))) return;
        last = message.event;
      }
    } catch {
      // It broke off, and so does this.
      return this.end(CLOSE.goingAway, "stream_ended");
    }
    if (last === "terminal") this.end(CLOSE.done, "terminal");
    else if (this.replay) this.end(CLOSE.done, "replayed");
    else this.end(CLOSE.goingAway, "stream_ended");
  }

  /** @returns whether there is more to do */
  async #send({ event, id, data }: SseMessage): Promise<boolean> {
    // JSON already, and none of it is looked at.
    const text = `{"event":${JSON.stringify(event)},"id":${JSON.stringify(id)},"data":${data}}`;
    if (this.#over || this.#socket === null) return false;
    if (this.#socket.send(text) === 0) this.#cut();
    const since = performance.now();
    while (!this.#over && this.#socket.getBufferedAmount() > AHEAD_BYTES) {
      const leftMs = since + this.stalledMs - performance.now();
      if (leftMs <= 0) this.#cut();
      else await this.#room.wait(leftMs);
    }
    return !this.#over;
  }

  #cut(): void {
    const socket = this.#socket;
    this.end(CLOSE.refused, "follower_stalled");
    // A close frame waits behind what nobody takes.
    socket?.terminate();
  }

  drained(): void {
    this.#room.ring();
  }

  end(code: number, reason: string): void {
    if (this.#over) return;
    this.#socket?.close(code, reason.slice(0, CLOSE_REASON_MAX));
    this.gone();
  }

  /** The client is gone, or was sent away. */
  gone(): void {
    this.#over = true;
    this.left.abort();
    this.#room.ring();
    if ("body" in this.source && !this.source.body.locked) this.source.body.cancel().catch(() => undefined);
  }
}
