import net from "node:net";
import { carriesToken } from "../../api/bearer.ts";
import { problemResponse } from "../../api/problem.ts";
import { RelayError } from "../../domain/errors.ts";
import { fieldOf } from "../../transport/http/head.ts";

/** Connections that have not shown the token; one more ends the oldest. Each takes a descriptor. */
const MAX_UNPROVEN = 64;
/** How long such a connection may last, answered or not, in milliseconds. */
const UNPROVEN_MS = 10_000;
const HEAD_MAX = 16 * 1024;

export interface FrontOptions {
  readonly token: string;
  /** The Unix socket of the server that gets every connection whose first request carries the token. */
  readonly socket: string;
  /** Answers a request that does not. Its body is not read, and its connection ends with the answer. */
  readonly answer: (request: Request) => Response | Promise<Response>;
  readonly maxUnproven?: number;
  readonly unprovenMs?: number;
}

/** What listens on loopback. */
export interface Front {
  readonly port: number;
  /** Connections by whether they have shown the token. */
  readonly connections: { readonly unproven: number; readonly proven: number };
  /** Take no more connections. */
  close(): void;
  /** Let the bytes on their way arrive for at most `graceMs`, then cut what is left. */
  drain(graceMs: number): Promise<void>;
}

/**
 * Listen on a free port of 127.0.0.1, which every user of the machine can reach, before a server that only the owner may hold up. A connection
 * is nobody's until its first request's head has come whole and carries the token; there are few of those, for a short time, and the
 * newest takes the place of the oldest, so that the owner, who proves itself with its first bytes, always gets through. From then on the
 * connection belongs to the server, which may be as patient as it likes.
 */
export async function listenInFront(options: FrontOptions): Promise<Front> {
  const unproven = new Set<net.Socket>();
  const proven = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    if (unproven.size >= (options.maxUnproven ?? MAX_UNPROVEN)) endOldest(unproven);
    unproven.add(socket);
    // What is wrong with a connection ends it, and nothing else.
    socket.on("error", () => socket.destroy());
    const deadline = setTimeout(() => socket.destroy(), options.unprovenMs ?? UNPROVEN_MS);
    socket.once("close", () => {
      clearTimeout(deadline);
      unproven.delete(socket);
      proven.delete(socket);
    });
    readHead(socket, (head, bytes) => {
      if (head === null || !isProof(head, options.token)) return void refuse(socket, head, options.answer);
      clearTimeout(deadline);
      unproven.delete(socket);
      proven.add(socket);
      join(socket, bytes, options.socket);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    get connections() {
      return { unproven: unproven.size, proven: proven.size };
    },
    close: () => void server.close(),
    async drain(graceMs) {
      for (const socket of unproven) socket.destroy();
      const gone = [...proven].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
      await Promise.race([Promise.all(gone), Bun.sleep(graceMs)]);
      for (const socket of proven) socket.destroy();
    },
  };
}

function endOldest(sockets: Set<net.Socket>): void {
  const [oldest] = sockets;
  if (oldest === undefined) return;
  // Many may come before anybody is told that one is closed.
  sockets.delete(oldest);
  oldest.destroy();
}

/** A request's first line and fields (RFC 9112, sections 3 and 5). */
interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** Read up to the empty line, once; null where what comes is no head. `bytes` is all that came. */
function readHead(socket: net.Socket, done: (head: RequestHead | null, bytes: Buffer) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk]);
    const end = bytes.indexOf("\r\n\r\n");
    if (end < 0 && bytes.length <= HEAD_MAX) return;
    socket.pause();
    socket.off("data", onData);
    done(end < 0 || end > HEAD_MAX ? null : parseRequestHead(bytes.toString("latin1", 0, end)), bytes);
  };
  socket.on("data", onData);
}

function parseRequestHead(text: string): RequestHead | null {
  const [first = "", ...lines] = text.split("\r\n");
  const request = /^([A-Z]{1,32}) (\/[\x21-\x7e]*) HTTP\/1\.1$/.exec(first);
  const fields = lines.map(fieldOf);
  if (request === null || fields.includes(null)) return null;
  return { method: request[1]!, target: request[2]!, fields: fields as RequestHead["fields"] };
}

function isProof({ fields }: RequestHead, token: string): boolean {
  const said = fields.filter(([name]) => name === "authorization");
  return said.length === 1 && carriesToken(said[0]![1], token);
}

/** Answer, and read over what still comes until the other side has the answer or the time is over: a reset would take it away again. */
async function refuse(socket: net.Socket, head: RequestHead | null, answer: FrontOptions["answer"]): Promise<void> {
  let response: Response;
  try {
    response = head === null ? notWellFormed() : await answer(requestOf(head));
  } catch {
    response = notWellFormed();
  }
  const body = head?.method === "HEAD" ? new Uint8Array() : await response.bytes();
  const lines = [`HTTP/1.1 ${response.status} ${response.statusText}`, `content-length: ${body.length}`, "connection: close"];
  response.headers.forEach((value, name) => {
    if (name !== "connection" && name !== "content-length") lines.push(`${name}: ${value}`);
  });
  socket.end(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body]));
  socket.resume();
}

const notWellFormed = (): Response =>
  problemResponse(new RelayError("http_request_malformed", "the head of the request is not well-formed, or too long"));

const requestOf = ({ method, target, fields }: RequestHead): Request =>
  new Request(`http://127.0.0.1${target}`, { method, headers: fields as [string, string][] });

/** Make one connection of two, with back-pressure; the end of either is the end of both. */
function join(socket: net.Socket, bytes: Buffer, path: string): void {
  const inner = net.connect({ path });
  inner.on("error", () => socket.destroy());
  inner.once("close", () => socket.end());
  socket.once("close", () => inner.destroy());
  inner.write(bytes);
  socket.pipe(inner);
  inner.pipe(socket);
}
