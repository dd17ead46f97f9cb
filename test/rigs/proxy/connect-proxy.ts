import net from "node:net";
import tls from "node:tls";

/** What a proxy was asked for: the lines of the request's head. */
export interface Asked {
  readonly target: string;
  readonly authorization: string | null;
}

export interface ConnectProxyOptions {
  /** `user:password` that it wants; nothing when left out. */
  readonly credentials?: string;
  /** Certificate and key in PEM: the way to it is TLS then. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Where a target leads instead of where it says; null: nowhere. */
  readonly resolve?: (target: string) => net.NetConnectOpts | null;
  /** What it answers in place of doing anything. */
  readonly answer?: string;
}

/** An HTTP proxy on loopback that does nothing but CONNECT, with Basic authentication where that is wanted. */
export class ConnectProxy implements AsyncDisposable {
  readonly asked: Asked[] = [];
  readonly #sockets = new Set<net.Socket>();

  private constructor(
    private readonly server: net.Server,
    private readonly options: ConnectProxyOptions,
  ) {
    server.on(options.tls === undefined ? "connection" : "secureConnection", (near: net.Socket) => this.#serve(near));
  }

  static async start(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
    const server = options.tls === undefined ? net.createServer() : (tls.createServer({ ...options.tls }) as net.Server);
    const proxy = new ConnectProxy(server, options);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port;
  }

  #keep(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #serve(near: net.Socket): void {
    this.#keep(near);
    let head = "";
    const onData = (chunk: Buffer): void => {
      head += chunk.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      near.off("data", onData);
      near.pause();
      this.#connect(near, head);
    };
    near.on("data", onData);
  }

  #connect(near: net.Socket, head: string): void {
    const target = /^CONNECT (\S+) HTTP\/1\.1\r\n/.exec(head)?.[1] ?? "";
    const authorization = /\r\nproxy-authorization: (.*)\r\n/i.exec(head)?.[1] ?? null;
    this.asked.push({ target, authorization });
    const { credentials, answer, resolve } = this.options;
    if (answer !== undefined) return void near.end(answer);
    if (credentials !== undefined && authorization !== `Basic ${Buffer.from(credentials).toString("base64")}`) {
      return void near.end(
        'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="rig"\r\nContent-Length: 0\r\n\r\n',
      );
    }
    const [, host = "", port = ""] = /^\[?([^\]]*?)\]?:(\d+)$/.exec(target) ?? [];
    const to = resolve === undefined ? { host, port: Number(port) } : resolve(target);
    if (to === null) return void near.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    const far = net.connect({ ...to, allowHalfOpen: true } as net.NetConnectOpts);
    this.#keep(far);
    far.once("error", () => near.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
    far.once("connect", () => {
      near.write("HTTP/1.1 200 Connection established\r\n\r\n");
      near.pipe(far);
      far.pipe(near);
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
    });
  }

  /** Close every connection at once. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
