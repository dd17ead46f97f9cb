import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { SocketServer } from "../../api/socket-server.ts";
import { RelayError } from "../../domain/errors.ts";
import { makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import { tryLock } from "../../lib/files/file-lock.ts";
import type { LinkSessions } from "./link-sessions.ts";

export interface LinkSocketOptions {
  /** Where it listens. */
  readonly socketPath: string;
  /** What answers them. */
  readonly sessions: Pick<LinkSessions, "serve">;
  readonly onTrouble: (error: unknown) => void;
}

/**
 * Listen for SSH-protocol sessions on a Unix socket of mode 0600, as the worker's bridge brings them. `<socket>.lock` is held for as long as it listens.
 * When it stops, sessions go on.
 *
 * @throws RelayError already_running when another process listens there
 */
export async function serveLinkSocket(options: LinkSocketOptions): Promise<SocketServer> {
  const { socketPath, sessions, onTrouble } = options;
  makePrivateDirectory(path.dirname(socketPath));
  const lock = tryLock(`${socketPath}.lock`);
  if (lock === null) throw new RelayError("already_running", `another process serves on ${socketPath}`);
  const listener = net.createServer({ allowHalfOpen: true }, (connection) => void sessions.serve(connection));
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
      lock.release();
    },
  };
}
