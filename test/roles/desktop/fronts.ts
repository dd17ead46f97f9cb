import { afterEach, expect } from "bun:test";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import { shownToken } from "../../../src/api/listener/bearer.ts";
import { type SocketServer, serveOnSocket } from "../../../src/api/socket-server.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { Front, type FrontBounds, type FrontOptions } from "../../../src/roles/desktop/front.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

export const TOKEN = "t0ken";
export const BLOCK = Buffer.alloc(64 * 1024, "clio ");
export const BLOCKS = 512;
export const STREAM = "id: 1\nevent: step\ndata: 1\n\nid: 1\nevent: terminal\ndata: {}\n\n";

const refused = (request: Request): Response => Response.json({ open: new URL(request.url).pathname }, { status: 401 });

/** A front, and a server behind it. */
interface Behind {
  readonly front: Front;
  readonly server: SocketServer;
  /** Requests that the server's client gave up. */
  readonly aborted: string[];
  /** How many blocks were asked of it. */
  given(): number;
}

interface Limits extends Partial<Pick<FrontOptions, "answer" | "onRefused" | "clock" | "tls">> {
  /** Whether the server asks for the token, too, as that of the API does. */
  readonly asks?: boolean;
  readonly bounds?: Partial<FrontBounds>;
  readonly unprovenMs?: number;
  readonly maxUnproven?: number;
}

/** Resolves to a count once it has begun and does not go on. */
export function standing(count: () => number): Promise<number> {
  let last = 0;
  const look = (): number | null => {
    const before = last;
    last = count();
    return last > 0 && last === before ? last : null;
  };
  return eventually(look, { everyMs: 200 });
}

/** A connection whose bytes are the test's own. */
export interface Raw {
  readonly socket: net.Socket;
  text(): string;
  readonly closed: Promise<void>;
  isClosed(): boolean;
}

export const head = (line: string, ...fields: string[]): string => [line, "Host: 127.0.0.1", ...fields, "", ""].join("\r\n");
export const BEARER = `Authorization: Bearer ${TOKEN}`;
export const HALF_HEAD = "POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le";
export const HALF_BODY = `${head("POST /echo HTTP/1.1", "Content-Length: 100")}{`;

/** Fronts on ports of their own, each with its server, for the tests of a file; all ends with the test, in which no front may have had a fault. */
export function fronts() {
  const directory = temporaryDirectories();
  const ending: (() => unknown)[] = [];
  const faults: Error[] = [];
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
    expect(faults.splice(0)).toEqual([]);
  });

  async function behind(limits: Limits = {}): Promise<Behind> {
    const {
      answer = refused,
      onRefused,
      clock = systemClock,
      unprovenMs = 10_000,
      maxUnproven = 64,
      bounds,
      tls = null,
      asks = false,
    } = limits;
    const socket = path.join(directory(), "front.sock");
    const aborted: string[] = [];
    let given = 0;
    const app = new Hono();
    app.use((c, next) => {
      if (asks && shownToken(c.req.raw.headers, TOKEN) !== "right") return Promise.resolve(c.text("no", 401));
      return next();
    });
    app.get("/owner", (c) => c.text("served"));
    app.post("/echo", (c) => new Response(c.req.raw.body));
    app.get("/blocks", () => {
      return new Response(new ReadableStream({ pull: (out) => (given++ < BLOCKS ? out.enqueue(new Uint8Array(BLOCK)) : out.close()) }));
    });
    app.get("/events/sse", () => new Response(STREAM, { headers: { "content-type": "text/event-stream" } }));
    app.get("/stream", (c) => {
      c.req.raw.signal.addEventListener("abort", () => aborted.push("/stream"));
      return new Response(new ReadableStream({ start: (out) => out.enqueue(Buffer.from("first\n")) }));
    });
    const server = serveOnSocket(app, socket);
    const front = new Front({
      address: { host: "127.0.0.1", port: 0 },
      tls,
      socket,
      token: () => TOKEN,
      answer,
      clock,
      bounds: { strangers: { all: maxUnproven, perAddress: maxUnproven }, strangerMs: unprovenMs, ...bounds },
      ...(onRefused === undefined ? {} : { onRefused }),
      onFault: (error) => faults.push(error),
    });
    ending.push(async () => {
      front.close();
      await server.stop(0);
      await front.drain(0);
    });
    return { front, server, aborted, given: () => Math.min(given, BLOCKS) };
  }

  async function connect(port: number, first = ""): Promise<Raw> {
    const chunks: Buffer[] = [];
    const socket = net.connect(port, "127.0.0.1");
    ending.push(() => socket.destroy());
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    let isClosed = false;
    const closed = new Promise<void>((resolve) =>
      socket.once("close", () => {
        isClosed = true;
        resolve();
      }),
    );
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    if (first !== "") socket.write(first);
    return { socket, text: () => Buffer.concat(chunks).toString("latin1"), closed, isClosed: () => isClosed };
  }

  return { behind, connect, ending };
}
