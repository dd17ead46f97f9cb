import type { Socket } from "bun";
import { AnswerParser } from "../../transport/http/answer-parser.ts";
import { headersOf } from "../../transport/http/end-to-end.ts";
import { type AnswerHead, closesAfter } from "../../transport/http/head.ts";
import { requestHead } from "../../transport/http/request-head.ts";

/** A request with a body of bytes, for a Unix socket. */
export interface BytesRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  /** Not to be changed before the answer is there. */
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
  /** The socket's path. */
  readonly unix: string;
}

/** Connections that wait for their next request, by the socket's path. */
const idle = new Map<string, Connection[]>();
const IDLE_MAX = 8;

/**
 * As much of `fetch` as large bodies need: that one copies a body into memory of its own before it sends it, which costs as much as all the rest. Answers are small, and come
 * whole. Connections are kept for the next request, and keep no process from its end.
 *
 * @throws the system's error where nobody listens; an Error when the connection ends before the answer; the signal's reason; RelayError answer_malformed
 */
export async function bytesFetch(url: URL, { unix, signal, ...request }: BytesRequest): Promise<Response> {
  signal.throwIfAborted();
  const connection = idle.get(unix)?.pop() ?? (await Connection.to(unix));
  const { method, body } = request;
  const head = requestHead({ method, body, headers: new Headers(request.headers), target: url.pathname + url.search });
  const answer = await connection.exchange(head, method, body, signal);
  if (connection.usable) keep(unix, connection);
  return answer;
}

function keep(unix: string, connection: Connection): void {
  const kept = idle.get(unix) ?? [];
  idle.set(unix, kept);
  if (kept.length < IDLE_MAX) kept.push(connection);
  else connection.end();
  connection.onEnd = () => {
    const at = kept.indexOf(connection);
    if (at >= 0) kept.splice(at, 1);
  };
}

interface Exchange {
  /** What is still to be written. */
  readonly parts: Uint8Array[];
  readonly parser: AnswerParser;
  reject(error: unknown): void;
}

/** One connection, on which one request after the other is made. */
class Connection {
  onEnd: () => void = () => undefined;
  #current: Exchange | null = null;
  #over = false;

  private constructor(private readonly socket: Socket<Connection>) {}

  static async to(unix: string): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>();
    Bun.connect<Connection>({
      unix,
      socket: {
        open(socket) {
          socket.data = new Connection(socket);
          resolve(socket.data);
        },
        data: (socket, bytes) => socket.data.#came(bytes),
        drain: (socket) => socket.data.#write(),
        end: (socket) => socket.data.ended(),
        // Where it was never opened nobody has it.
        error: (socket, error) => (socket.data as Connection | undefined)?.ended(error),
        close: (socket, error) => (socket.data as Connection | undefined)?.ended(error ?? undefined),
        connectError: (_socket, error) => reject(error),
      },
    }).catch(reject);
    return promise;
  }

  /** Whether it can have another request. */
  get usable(): boolean {
    return !this.#over;
  }

  async exchange(head: Buffer, method: string, body: Uint8Array, signal: AbortSignal): Promise<Response> {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const aborted = (): void => {
      reject(signal.reason);
      this.end();
    };
    signal.addEventListener("abort", aborted, { once: true });
    const parts = [head, body];
    const chunks: Buffer[] = [];
    let found: AnswerHead | null = null;
    const parser = new AnswerParser(method, false, {
      head: (answer) => {
        found = answer;
      },
      data: (chunk) => void chunks.push(Buffer.from(chunk)),
      end: (rest) => {
        this.#current = null;
        // Of a request that is answered before it is sent, nobody reads the rest.
        if (rest.length > 0 || parts.length > 0 || closesAfter(found!)) this.end();
        resolve(new Response(chunks.length === 0 ? null : Buffer.concat(chunks), { status: found!.status, headers: headersOf(found!) }));
      },
    });
    this.#current = { parts, parser, reject };
    this.socket.ref();
    this.#write();
    if (this.#over) reject(new Error("the connection was closed before the request was made"));
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", aborted);
      this.socket.unref();
    }
  }

  #write(): void {
    const parts = this.#current?.parts ?? [];
    for (let first = parts[0]; first !== undefined; first = parts[0]) {
      const taken = Math.max(0, this.socket.write(first));
      if (taken < first.length) {
        parts[0] = first.subarray(taken);
        return;
      }
      parts.shift();
    }
  }

  #came(bytes: Buffer): void {
    const current = this.#current;
    try {
      current?.parser.push(bytes);
    } catch (error) {
      current?.reject(error);
      this.end();
    }
    // Nobody asked: whoever comes next would take it for an answer.
    if (current === null) this.end();
  }

  /** The other side has gone. */
  ended(error: Error = new Error("the connection was closed before the answer was complete")): void {
    this.#current?.reject(error);
    this.end();
  }

  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#current = null;
    this.onEnd();
    this.socket.end();
  }
}
