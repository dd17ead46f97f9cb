import type { Socket, TCPSocketListener } from "bun";
import { RelayError } from "../../domain/errors.ts";
import { SocketCarrier } from "./carrier.ts";
import { carrierHandlers, type Inside } from "./handlers.ts";

/** Where a relay-host listens. */
export interface ListenAddress {
  /** A name or an address; null: all of this machine's. */
  readonly host: string | null;
  /** 0: the system's choice. */
  readonly port: number;
}

export interface Listening {
  readonly address: ListenAddress;
  /** PEM; null: without TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** A connection has come. The answer is told of its end; a connection that gets null is broken off at once, unread. */
  readonly onConnection: (carrier: SocketCarrier, address: string) => (() => void) | null;
  /** Something of ours went wrong on a connection, which is broken off. */
  readonly onFault: (error: Error) => void;
}

export interface Listener {
  readonly address: ListenAddress;
  /** Take no more. Connections that are open go on. */
  stop(): void;
}

/** Of both families; of one, where the machine has no other. */
const EVERYWHERE = ["::", "0.0.0.0"];

/** @throws RelayError configuration_error where the address cannot be listened on, or certificate and key are none */
export function listen({ address, tls, onConnection, onFault }: Listening): Listener {
  const take = (socket: Socket<Inside>): void => {
    const carrier = new SocketCarrier(socket);
    const closed = onConnection(carrier, socket.remoteAddress);
    socket.data = { carrier: closed === null ? null : carrier, closed: closed ?? (() => undefined) };
    if (closed === null) {
      socket.terminate();
      return;
    }
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
  };
  const at = (hostname: string): TCPSocketListener<Inside> =>
    Bun.listen<Inside>({
      hostname,
      port: address.port,
      allowHalfOpen: true,
      ...(tls === null ? {} : { tls: { cert: tls.cert, key: tls.key } }),
      socket: {
        open: take,
        // Without it, `open` would come only when TLS is there, and who never comes so far would be nobody's.
        handshake: () => undefined,
        ...carrierHandlers(onFault),
      },
    });
  const failures: NodeJS.ErrnoException[] = [];
  for (const host of address.host === null ? EVERYWHERE : [address.host]) {
    try {
      const server = at(host);
      return { address: { host, port: server.port }, stop: () => server.stop(false) };
    } catch (error) {
      failures.push(error as NodeJS.ErrnoException);
    }
  }
  throw unusable(address, failures);
}

/** What the system says, for people. */
const WHY: Readonly<Record<string, string>> = {
  EACCES: "this user may not",
  EADDRINUSE: "something listens there already",
  EADDRNOTAVAIL: "it is no address of this machine",
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: "the key is not that of the certificate",
};
/** About the port, whichever the family. */
const OF_PORT = ["EACCES", "EADDRINUSE"];

function unusable({ host, port }: ListenAddress, failures: readonly NodeJS.ErrnoException[]): RelayError {
  const cause = failures.find(({ code = "" }) => OF_PORT.includes(code)) ?? failures[0]!;
  const { code = "", message } = cause;
  const why = [WHY[code] ?? message, ...(code === "" ? [] : [code])].join(", ");
  const hint =
    code === "EACCES" && port < 1_024
      ? `ports below 1024 need a right: clio-relay relay-host service install gives it to its service, setcap cap_net_bind_service=+ep to an executable; or take a port above 1023, behind an edge`
      : undefined;
  return new RelayError(
    "configuration_error",
    `${host === null ? "" : `${host}, `}port ${port}, cannot be listened on (${why})`,
    { port, ...(code === "" ? {} : { errno: code }) },
    hint,
    { cause },
  );
}
