import type { Socket, TCPSocketListener } from "bun";
import { RelayError } from "../../domain/errors.ts";
import { SocketCarrier } from "./carrier.ts";
import type { Speech } from "./door.ts";

/** Where a relay-host listens. */
export interface ListenAddress {
  /** A name or an address; `0.0.0.0` and `::` for all. */
  readonly host: string;
  /** 0: the system's choice. */
  readonly port: number;
}

export interface Listening {
  readonly address: ListenAddress;
  readonly speech: Speech;
  /** PEM; null: without TLS. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** A connection has come. The answer is told of its end; a connection that gets null is broken off at once, unread. */
  readonly onConnection: (carrier: SocketCarrier, address: string) => (() => void) | null;
}

export interface Listener {
  readonly address: ListenAddress;
  /** Take no more. Connections that are open go on. */
  stop(): void;
}

interface Inside {
  carrier: SocketCarrier | null;
  closed: () => void;
}

/** @throws RelayError configuration_error where the address cannot be listened on, or certificate and key are none */
export function listen({ address, speech, tls, onConnection }: Listening): Listener {
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
  let server: TCPSocketListener<Inside>;
  try {
    server = Bun.listen<Inside>({
      hostname: address.host,
      port: address.port,
      allowHalfOpen: true,
      ...(tls === null ? {} : { tls: { cert: tls.cert, key: tls.key } }),
      socket: {
        open: take,
        data: (socket, chunk) => socket.data.carrier?.sink.data(chunk),
        drain: (socket) => socket.data.carrier?.flush(),
        end: (socket) => socket.data.carrier?.ended(),
        error: () => undefined,
        close(socket, error) {
          socket.data.carrier?.closed(error !== undefined && error !== null);
          socket.data.closed();
        },
      },
    });
  } catch (error) {
    const { host, port } = address;
    throw new RelayError(
      "configuration_error",
      `${host}, port ${port}, cannot be listened on (${speech}): ${(error as Error).message}`,
      {},
      undefined,
      {
        cause: error,
      },
    );
  }
  return { address: { host: address.host, port: server.port }, stop: () => server.stop(false) };
}
