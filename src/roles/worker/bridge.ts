import net from "node:net";
import type { Readable, Writable } from "node:stream";
import { RelayError } from "../../domain/errors.ts";

/**
 * Carry bytes between a pair of streams and the worker's link socket, until one side is over. Before the first of them it says the line by which
 * the other side tells them from what a login shell prints. See docs/wire.md, Bridge.
 *
 * @throws RelayError worker_not_running where nobody listens
 */
export async function runBridge(socketPath: string, nonce: string, input: Readable, output: Writable): Promise<void> {
  const socket = net.connect({ path: socketPath, allowHalfOpen: true } as net.NetConnectOpts);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", (cause) =>
      reject(new RelayError("worker_not_running", "no worker listens for links here", {}, undefined, { cause })),
    );
  });
  output.write(`clio-relay-bridge 1 ${nonce}\n`);
  input.pipe(socket);
  socket.pipe(output, { end: false });
  await new Promise<void>((resolve) => {
    for (const end of ["close", "error"]) {
      socket.on(end, () => resolve());
      output.on(end, () => resolve());
    }
    socket.on("end", () => resolve());
  });
  input.unpipe(socket);
  socket.destroy();
  // What the worker has said last goes out; a reader that is gone does not hold it up.
  if (output.writable) await new Promise<void>((resolve) => output.write("", () => resolve()));
}
