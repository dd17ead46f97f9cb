import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import type { SocketServer } from "../../api/socket-server.ts";
import { RelayError } from "../../domain/errors.ts";
import { makePrivateDirectory } from "../../lib/atomic-file.ts";
import { tryLock } from "../../lib/file-lock.ts";
import type { SessionServer } from "../../transport/session/session-server.ts";

export interface LinkSocketOptions {
  /** Where it listens. */
  readonly socketPath: string;
  /** Where the worker's HTTP server listens: what every channel is joined with. */
  readonly httpSocket: string;
  /** Where the worker's host key and the keys of its desktops are. */
  readonly coreDir: string;
  /** For people who look at the key. */
  readonly comment: string;
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Listen for SSH-protocol sessions on a Unix socket of mode 0600, as the worker's bridge brings them, and answer them with the worker's own identity.
 * `<socket>.lock` is held for as long as it listens.
 *
 * @throws RelayError already_running when another process listens there
 */
export async function serveLinkSocket(options: LinkSocketOptions): Promise<SocketServer> {
  const { socketPath, onTrouble } = options;
  makePrivateDirectory(path.dirname(socketPath));
  const lock = tryLock(`${socketPath}.lock`);
  if (lock === null) throw new RelayError("already_running", `another process serves on ${socketPath}`);
  let sessions: Promise<SessionServer> | null = null;
  const listener = net.createServer({ allowHalfOpen: true }, (connection) => {
    connection.on("error", () => undefined);
    // The protocol is loaded when somebody speaks it.
    sessions ??= sessionServer(options);
    sessions.then(
      (server) => server.serve(connection),
      (error: unknown) => {
        sessions = null;
        connection.destroy();
        onTrouble(error);
      },
    );
  });
  listener.on("error", onTrouble);
  // Under another name until it is the user's alone; and whoever closes a listener removes the name that it was given.
  const bound = path.join(path.dirname(socketPath), `.${process.pid}-link`);
  try {
    fs.rmSync(bound, { force: true });
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(bound, resolve);
    });
    fs.chmodSync(bound, 0o600);
    fs.renameSync(bound, socketPath);
  } catch (error) {
    listener.close();
    lock.release();
    throw error;
  }
  const own = fs.statSync(socketPath).ino;
  const present = (): boolean => fs.statSync(socketPath, { throwIfNoEntry: false })?.ino === own;
  return {
    get present() {
      return present();
    },
    async stop() {
      if (present()) fs.rmSync(socketPath, { force: true });
      listener.close();
      await (await sessions?.catch(() => null))?.close();
      lock.release();
    },
  };
}

async function sessionServer({ coreDir, comment, httpSocket }: LinkSocketOptions): Promise<SessionServer> {
  const [{ SessionServer: Server }, { allowedClients, hostKey }] = await Promise.all([
    import("../../transport/session/session-server.ts"),
    import("./link-keys.ts"),
  ]);
  return new Server({
    hostKey: hostKey(coreDir, comment),
    allowedKeys: () => allowedClients(coreDir),
    connect: () => connectTo(httpSocket),
  });
}

function connectTo(socket: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ path: socket, allowHalfOpen: true } as net.NetConnectOpts);
    connection.once("connect", () => resolve(connection));
    connection.once("error", reject);
  });
}
