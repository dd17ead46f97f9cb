import net from "node:net";

/** What a proxy does to the connections through it. Everything may be changed at any time. */
export interface Weather {
  /** Milliseconds that every byte takes in each direction. */
  delayMs: number;
  /** Bytes per second in each direction; all connections share it. */
  bytesPerSecond: number;
  /** Nothing is passed on, nothing is said about it. */
  blackhole: boolean;
  /** How many more bytes are passed on, of all connections together; what follows is held, in its order. */
  readonly passes: { toTarget: number; fromTarget: number };
}

/** A byte on its way. */
interface Parcel {
  readonly at: number;
  readonly bytes: Buffer | null;
}

/** How much may be on its way in one direction before the sender is held up: the buffers of a path. */
const MAX_UNDER_WAY = 8 * 2 ** 20;

const ALL = Number.POSITIVE_INFINITY;

/** A TCP proxy on loopback that delays, throttles, swallows, holds and cuts. */
export class TcpProxy implements AsyncDisposable {
  readonly weather: Weather = {
    delayMs: 0,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    blackhole: false,
    passes: { toTarget: ALL, fromTarget: ALL },
  };
  readonly #sockets = new Set<net.Socket>();
  #accepted = 0;

  private constructor(
    private readonly server: net.Server,
    private readonly target: () => net.NetConnectOpts,
  ) {
    server.on("connection", (near) => this.#join(near));
  }

  static async start(target: net.NetConnectOpts): Promise<TcpProxy> {
    const server = net.createServer({ allowHalfOpen: true, noDelay: true });
    const proxy = new TcpProxy(server, () => target);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port;
  }

  /** Connections that came in so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Connections that are open. */
  get open(): number {
    return this.#sockets.size / 2;
  }

  #join(near: net.Socket): void {
    this.#accepted++;
    const far = net.connect({ ...this.target(), allowHalfOpen: true, noDelay: true } as net.NetConnectOpts);
    const cut = (): void => {
      for (const socket of [near, far]) {
        this.#sockets.delete(socket);
        socket.destroy();
      }
    };
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on("error", cut);
      socket.on("close", cut);
    }
    this.#carry(near, far, "toTarget");
    this.#carry(far, near, "fromTarget");
  }

  #carry(from: net.Socket, to: net.Socket, way: keyof Weather["passes"]): void {
    const { passes } = this.weather;
    const parcels: Parcel[] = [];
    let underWay = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let free = 0;
    const isHeld = (): boolean => this.weather.blackhole || passes[way] === 0;
    const deliver = (): void => {
      timer = undefined;
      const now = performance.now();
      while (parcels.length > 0 && parcels[0]!.at <= now && !isHeld()) {
        const { at, bytes } = parcels.shift()!;
        if (bytes === null) to.end();
        else {
          const passed = bytes.subarray(0, Math.min(bytes.length, passes[way]));
          passes[way] -= passed.length;
          underWay -= passed.length;
          if (to.writable) to.write(passed);
          if (passed.length < bytes.length) parcels.unshift({ at, bytes: bytes.subarray(passed.length) });
        }
      }
      if (underWay < MAX_UNDER_WAY / 2) from.resume();
      if (parcels.length > 0) timer = setTimeout(deliver, isHeld() ? 10 : Math.max(0, parcels[0]!.at - performance.now()));
    };
    const take = (bytes: Buffer | null): void => {
      const now = performance.now();
      free = Math.max(free, now) + ((bytes?.length ?? 0) / this.weather.bytesPerSecond) * 1_000;
      parcels.push({ at: free + this.weather.delayMs, bytes });
      underWay += bytes?.length ?? 0;
      if (underWay > MAX_UNDER_WAY) from.pause();
      timer ??= setTimeout(deliver, Math.max(0, parcels[0]!.at - now));
    };
    from.on("data", take);
    from.on("end", () => take(null));
    from.on("close", () => clearTimeout(timer));
  }

  /** Close every connection at once; what was on its way is lost. */
  cut(): void {
    for (const socket of [...this.#sockets]) socket.destroy();
  }

  /** The same with a reset (RST) in place of an orderly end. */
  reset(): void {
    for (const socket of [...this.#sockets]) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
