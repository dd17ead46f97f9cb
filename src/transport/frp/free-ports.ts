import net from "node:net";
import { RelayError } from "../../domain/errors.ts";

/**
 * Ports of loopback that nobody listens on, no two of them the same: they are held side by side until all are known.
 *
 * @throws RelayError frp_unreachable where this machine has none left
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => net.createServer());
  try {
    return await Promise.all(servers.map(portOf));
  } finally {
    await Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  }
}

const portOf = (server: net.Server): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        new RelayError("frp_unreachable", `this machine has no free port for frpc (${error.code ?? error.message})`, {}, undefined, {
          cause: error,
        }),
      ),
    );
    server.listen(0, "127.0.0.1", () => resolve((server.address() as net.AddressInfo).port));
  });
