import type { Socket } from "bun";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { SocketCarrier } from "./carrier.ts";

/** What a socket of Bun's knows of itself. */
export interface Inside {
  /** null: it was broken off, unread. */
  carrier: SocketCarrier | null;
  closed: () => void;
}

/**
 * What a socket tells, handed to its carrier.
 *
 * @param onFault something of ours went wrong on a connection, which is broken off
 */
export const carrierHandlers = (onFault: (error: Error) => void) => ({
  data: (socket: Socket<Inside>, chunk: Buffer) => socket.data.carrier?.came(chunk),
  drain: (socket: Socket<Inside>) => socket.data.carrier?.flush(),
  end: (socket: Socket<Inside>) => socket.data.carrier?.ended(),
  // What a handler throws comes here; a connection that breaks does not.
  error(socket: Socket<Inside>, error: Error) {
    onFault(error);
    if (socket.data?.carrier) socket.data.carrier.destroy();
    else socket.terminate();
  },
  close(socket: Socket<Inside>, error?: Error) {
    socket.data?.carrier?.closed(error !== undefined && error !== null);
    socket.data?.closed();
  },
});

/** Connections that wait to be taken fill a queue (listen(2)); the next one is refused as if nobody listened. */
const QUEUE_TRIES = 50;
const QUEUE_MS = 10;

/** A connection to a Unix socket. @throws the system's error where nobody listens, after half a second */
export async function connectUnix(unix: string, onFault: (error: Error) => void): Promise<SocketCarrier> {
  for (let left = QUEUE_TRIES; ; left--) {
    try {
      return await connectOnce(unix, onFault);
    } catch (error) {
      if (left <= 0 || !isErrno(error, "ECONNREFUSED", "EAGAIN")) throw error;
      await Bun.sleep(QUEUE_MS);
    }
  }
}

async function connectOnce(unix: string, onFault: (error: Error) => void): Promise<SocketCarrier> {
  const { promise, resolve, reject } = Promise.withResolvers<SocketCarrier>();
  Bun.connect<Inside>({
    unix,
    allowHalfOpen: true,
    socket: {
      ...carrierHandlers(onFault),
      open(socket) {
        const carrier = new SocketCarrier(socket);
        socket.data = { carrier, closed: () => undefined };
        resolve(carrier);
      },
      connectError: (_socket, error) => reject(error),
    },
  }).catch(reject);
  return promise;
}
