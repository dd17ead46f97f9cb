import dns from "node:dns";
import net from "node:net";
import { RelayError } from "../domain/errors.ts";

export interface TcpRequest {
  readonly host: string;
  readonly port: number;
  readonly family: "any" | "inet" | "inet6";
  /** The local address to go out from; null: the system's choice. */
  readonly bindAddress: string | null;
  /** For everything, names looked up included. */
  readonly timeoutMs: number;
  /** How long one address may take; left out: 5 s where there are others, and else all of the time. */
  readonly addressMs?: number;
  readonly signal: AbortSignal;
  /** getaddrinfo(3): the addresses of a name, of one family or (0) of any. */
  readonly lookUp?: (host: string, family: 0 | 4 | 6) => Promise<readonly dns.LookupAddress[]>;
}

const systemLookUp = (host: string, family: 0 | 4 | 6): Promise<readonly dns.LookupAddress[]> =>
  dns.promises.lookup(host, { all: true, family });

/** How long one address may take while there are others to try. */
export const ADDRESS_MS = 5_000;
const FAMILY = { any: 0, inet: 4, inet6: 6 } as const;

/**
 * Connect, trying the addresses of a name one after the other, its families in turns. Never two at a time: each that connects is a connection in the
 * server's log.
 *
 * @throws RelayError host_unreachable with what each address said; the signal's reason
 */
export async function dialTcp(request: TcpRequest): Promise<net.Socket> {
  const { signal, timeoutMs, addressMs } = request;
  const deadline = performance.now() + timeoutMs;
  const addresses = await within(addressesOf(request), timeoutMs, request);
  const failures: string[] = [];
  for (const [index, { address }] of addresses.entries()) {
    const left = deadline - performance.now();
    if (left <= 0) break;
    const last = index === addresses.length - 1;
    try {
      return await connect(address, Math.min(left, addressMs ?? (last ? left : ADDRESS_MS)), request);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${address}: ${await codeOf(error, address, request.port)}`);
    }
  }
  throw unreachable("tcp", request, failures.join("; ") || `no answer within ${timeoutMs} ms`);
}

/**
 * What the system said of an address. Of a connect(2) that fails at once the runtime only says that it was refused; a socket of UDP that is connected sends nothing, and fails as the
 * way to that address does.
 */
async function codeOf(error: unknown, address: string, port: number): Promise<string> {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== "ECONNREFUSED") return code ?? message;
  try {
    const hostname = net.isIP(address) === 6 ? "::" : "0.0.0.0";
    (await Bun.udpSocket({ hostname, connect: { hostname: address, port } })).close();
    return code;
  } catch (noWay) {
    return (noWay as NodeJS.ErrnoException).code ?? code;
  }
}

/** Whether it was the name or the way that failed. */
type Layer = "dns" | "tcp";

const unreachable = (layer: Layer, { host, port }: Pick<TcpRequest, "host" | "port">, why: string, cause?: unknown): RelayError =>
  new RelayError("host_unreachable", `${host}, port ${port}, cannot be reached (${why})`, { host, port, layer }, undefined, { cause });

async function addressesOf(request: TcpRequest): Promise<readonly dns.LookupAddress[]> {
  const { host, family, lookUp = systemLookUp } = request;
  const literal = net.isIP(host);
  if (literal !== 0) {
    if (FAMILY[family] !== 0 && FAMILY[family] !== literal) throw unreachable("tcp", request, `it is no address of the family ${family}`);
    return [{ address: host, family: literal }];
  }
  let found: readonly dns.LookupAddress[];
  try {
    found = await lookUp(host, FAMILY[family]);
  } catch (error) {
    throw unreachable("dns", request, `its name is not known: ${(error as NodeJS.ErrnoException).code ?? "lookup failed"}`, error);
  }
  return inTurns(found);
}

/** The first family first, then the other one, and so on (RFC 8305, section 4). */
function inTurns(found: readonly dns.LookupAddress[]): dns.LookupAddress[] {
  const first = found.filter(({ family }) => family === found[0]!.family);
  const second = found.filter(({ family }) => family !== found[0]!.family);
  const order: dns.LookupAddress[] = [];
  for (let i = 0; i < Math.max(first.length, second.length); i++) {
    for (const list of [first, second]) if (list[i] !== undefined) order.push(list[i]!);
  }
  return order;
}

function within<T>(promise: Promise<T>, ms: number, request: TcpRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    const { signal } = request;
    const timer = setTimeout(() => reject(unreachable("dns", request, "its name is not answered for")), ms);
    const aborted = (): void => reject(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener("abort", aborted, { once: true });
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
    });
  });
}

function connect(address: string, ms: number, { port, bindAddress, signal }: TcpRequest): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({
      host: address,
      port,
      noDelay: true,
      keepAlive: true,
      ...(bindAddress === null ? {} : { localAddress: bindAddress }),
    });
    const done = (error: unknown): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
      socket.removeListener("error", done);
      if (error === null) resolve(socket);
      else {
        socket.on("error", () => undefined);
        socket.destroy();
        reject(error);
      }
    };
    const aborted = (): void => done(signal.reason);
    const timer = setTimeout(() => done(Object.assign(new Error("timed out"), { code: "ETIMEDOUT" })), ms);
    signal.addEventListener("abort", aborted, { once: true });
    socket.once("connect", () => done(null));
    socket.once("error", done);
  });
}
