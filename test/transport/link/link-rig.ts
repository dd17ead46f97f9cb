import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { type LinkInfo, OLDEST_PROTOCOL, PROTOCOL } from "../../../src/domain/link.ts";
import { Link, type LinkOptions, type LinkSnapshot } from "../../../src/transport/link.ts";
import type { BringUp } from "../../../src/transport/link-transport.ts";
import { openClientSession } from "../../../src/transport/session/client-session.ts";
import { SessionServer } from "../../../src/transport/session/session-server.ts";
import { TcpProxy } from "../../rigs/proxy/tcp-proxy.ts";
import { HOST, honest, publicKey, USER } from "../session/peers.ts";

export const INFO: LinkInfo = {
  protocol: PROTOCOL,
  oldest_protocol: OLDEST_PROTOCOL,
  version: "1.2.3",
  cluster: "far",
  worker_id: "worker_1",
  host: { hostname: "node1", boot_id: "boot" },
  started_at: "2026-01-01T00:00:00.000Z",
  host_key: null,
  next_host_key: null,
};

/** A worker's socket with a session server before it, a proxy before that, and a link through all of it. */
export class LinkRig implements AsyncDisposable {
  readonly changes: LinkSnapshot[] = [];
  readonly link: Link;
  /** What GET /link is answered with. */
  info: unknown = INFO;
  /** Whether the worker's HTTP server answers at all. */
  hangs = false;
  workerGone = false;
  requests = 0;
  #sessions: SessionServer;
  #listener: net.Server;
  #http: Bun.Server<undefined>;

  private constructor(
    directory: string,
    fetch: (request: Request) => Response | Promise<Response>,
    options: Partial<LinkOptions>,
    readonly proxy: TcpProxy,
    listener: net.Server,
  ) {
    const socket = path.join(directory, "http.sock");
    this.#http = Bun.serve({
      unix: socket,
      idleTimeout: 0,
      fetch: async (request: Request) => {
        this.requests++;
        if (this.hangs) await new Promise(() => undefined);
        return new URL(request.url).pathname === "/link"
          ? Response.json(this.info, this.info === null ? { status: 404 } : {})
          : fetch(request);
      },
    } as unknown as Bun.Serve.Options<undefined>) as Bun.Server<undefined>;
    this.#sessions = new SessionServer({
      hostKey: HOST.privateKey,
      allowedKeys: () => [publicKey(USER)],
      connect: () => (this.workerGone ? Promise.reject(new Error("nobody")) : connectTo({ path: socket })),
    });
    this.#listener = listener;
    listener.on("connection", (connection) => this.#sessions.serve(connection));
    this.link = new Link({
      cluster: "far",
      version: "1.0.0",
      afterDrop: "authorization_required",
      onChange: (snapshot) => this.changes.push(snapshot),
      ...options,
    });
  }

  static async start(
    directory: string,
    options: Partial<LinkOptions> = {},
    fetch: (request: Request) => Response | Promise<Response> = () => new Response("hello"),
  ): Promise<LinkRig> {
    const listener = net.createServer({ allowHalfOpen: true, noDelay: true });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const proxy = await TcpProxy.start({ host: "127.0.0.1", port: (listener.address() as net.AddressInfo).port });
    return new LinkRig(directory, fetch, options, proxy, listener);
  }

  get states(): string[] {
    return this.changes.map(({ state }) => state);
  }

  readonly bringUp: BringUp = async (signal) => {
    const duplex = await connectTo({ host: "127.0.0.1", port: this.proxy.port });
    const session = await openClientSession(duplex, honest({ signal }));
    return { session, open: (one) => session.openSocket("/", one) };
  };

  connect(): Promise<void> {
    return this.link.connect(this.bringUp, { cluster: "far" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.link.disconnect();
    await this.#sessions.close();
    await this.proxy[Symbol.asyncDispose]();
    this.#listener.close();
    await this.#http.stop(true);
  }
}

function connectTo(where: net.NetConnectOpts): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ ...where, allowHalfOpen: true, noDelay: true } as net.NetConnectOpts);
    connection.once("connect", () => resolve(connection));
    connection.once("error", reject);
  });
}

export async function bodyOf({ body }: { body: Uint8Array | ReadableStream<Uint8Array> | null }): Promise<Buffer> {
  if (!(body instanceof ReadableStream)) return Buffer.from(body ?? []);
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}
