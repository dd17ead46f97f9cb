import net from "node:net";

/** What a proxy does to the connections through it. Everything may be changed at any time. */
export interface Weather {
  /** Milliseconds that every byte takes in each direction. */
  delayMs: number;
  /** Bytes per second in each direction; all connections share it. */
  bytesPerSecond: number;
  /** Nothing is passed on, nothing is said about it. */
  blackhole: boolean;
}

type Way = "toTarget" | "fromTarget";

/** How much is still passed on one way, of all connections together. */
interface Allowance {
  bytes: number;
  readonly spent: PromiseWithResolvers<void>;
}

/** A byte on its way. */
interface Parcel {
  readonly at: number;
  readonly bytes: Buffer | null;
}

/** How much may be on its way in one direction before the sender is held up: the buffers of a path. */
const MAX_UNDER_WAY = 8 * 2 ** 20;

/** A TCP proxy on loopback that delays, throttles, swallows, holds and cuts. */
export class TcpProxy implements AsyncDisposable {
  readonly weather: Weather = {
    delayMs: 0,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    blackhole: false,
  };
  readonly #allowed = new Map<Way, Allowance>();
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

  /** Pass on so many more bytes that way, and hold what follows, in its order. Resolves when they have been passed on. */
  passOnly(way: Way, bytes: number): Promise<void> {
    const spent = Promise.withResolvers<void>();
    this.#allowed.set(way, { bytes, spent });
    return spent.promise;
  }

  /** Hold nothing any more. */
  passAll(): void {
    this.#allowed.clear();
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

  #carry(from: net.Socket, to: net.Socket, way: Way): void {
    const parcels: Parcel[] = [];
    let underWay = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let free = 0;
    const isHeld = (): boolean => this.weather.blackhole || this.#allowed.get(way)?.bytes === 0;
    const deliver = (): void => {
      timer = undefined;
      const now = performance.now();
      while (parcels.length > 0 && parcels[0]!.at <= now && !isHeld()) {
        const { at, bytes } = parcels.shift()!;
        if (bytes === null) to.end();
        else {
          const passed = this.#spend(way, bytes);
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

  /** As much of this as is passed on. */
  #spend(way: Way, bytes: Buffer): Buffer {
    const allowance = this.#allowed.get(way);
    if (allowance === undefined) return bytes;
    const passed = bytes.subarray(0, allowance.bytes);
    allowance.bytes -= passed.length;
    if (allowance.bytes === 0) allowance.spent.resolve();
    return passed;
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
