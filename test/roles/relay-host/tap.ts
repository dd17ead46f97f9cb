import net from "node:net";

/** What a tap does with what passes; what it returns is passed on. */
export type Change = (chunk: Buffer, way: "up" | "down") => readonly Buffer[] | Promise<readonly Buffer[]>;

/** Stands between somebody and a port of loopback: keeps all that passes, and changes it as a test likes. */
export class Tap {
  readonly #sockets = new Set<net.Socket>();
  readonly #kept: Buffer[] = [];
  change: Change = (chunk) => [chunk];
  #port = 0;

  private constructor(private readonly server: net.Server) {}

  static async before(port: number): Promise<Tap> {
    const server = net.createServer({ allowHalfOpen: true });
    const tap = new Tap(server);
    server.on("connection", (near: net.Socket) => {
      const far = net.connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
      near.setNoDelay(true);
      tap.#carry(near, far, "up");
      tap.#carry(far, near, "down");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    tap.#port = (server.address() as net.AddressInfo).port;
    return tap;
  }

  get port(): number {
    return this.#port;
  }

  /** All bytes that have come to it, in both directions. */
  get kept(): Buffer {
    return Buffer.concat(this.#kept);
  }

  #carry(from: net.Socket, to: net.Socket, way: "up" | "down"): void {
    this.#sockets.add(from);
    let turn = Promise.resolve();
    const inTurn = (work: () => unknown): void => {
      turn = turn.then(async () => void (await work())).catch(() => void to.destroy());
    };
    from.on("data", (chunk: Buffer) => {
      const own = Buffer.from(chunk);
      this.#kept.push(own);
      inTurn(async () => {
        for (const piece of await this.change(Buffer.from(own), way)) to.write(piece);
      });
    });
    from.on("end", () => inTurn(() => to.end()));
    from.on("error", () => to.destroy());
    from.on("close", () => this.#sockets.delete(from));
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
  }
}
