import fs from "node:fs";
import path from "node:path";
import type { Hono } from "hono";
import { RelayError } from "../domain/errors.ts";
import { makePrivateDirectory } from "../lib/files/atomic-file.ts";
import { type FileLock, tryLock } from "../lib/files/file-lock.ts";
import { afterRequest } from "./read-over.ts";
import { withWebSockets } from "./web-socket.ts";

/** A running HTTP server on a private Unix socket. */
export interface SocketServer {
  /** Whether the socket file is still there; without it nobody can find the server. */
  readonly present: boolean;
  /** Stop accepting, let answers in flight finish for at most `graceMs`, then cut what is left; removes the socket. */
  stop(graceMs: number): Promise<void>;
}

/**
 * Serve an app on a Unix socket of mode 0600 in a 0700 directory. `<socket>.lock` is held for as long as it serves, and only its holder
 * removes a left-over socket file.
 *
 * @throws RelayError already_running when another process serves on that socket
 */
export function serveOnSocket(app: Hono, socketPath: string): SocketServer {
  makePrivateDirectory(path.dirname(socketPath));
  const lock = tryLock(`${socketPath}.lock`);
  if (lock === null) throw new RelayError("already_running", `another process serves on ${socketPath}`);
  try {
    return serve(app, socketPath, lock);
  } catch (error) {
    lock.release();
    throw error;
  }
}

function serve(app: Hono, socketPath: string, lock: FileLock): SocketServer {
  // Bun removes the path that it was told when it stops, whoever's socket is there by then; so that is another one, and no longer.
  const bound = path.join(path.dirname(socketPath), `.${process.pid}`);
  fs.rmSync(bound, { force: true });
  const web = withWebSockets((request) => afterRequest(request, (one) => app.fetch(one)));
  const options = {
    unix: bound,
    fetch: web.fetch,
    websocket: web.websocket,
    // Waits and streams are quiet for as long as they like. The type forbids it for Unix sockets, the default of 10 s applies to them all the same.
    idleTimeout: 0,
    // Bodies are bounded where they are read, with a typed answer.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  };
  const server = Bun.serve(options as unknown as Bun.Serve.Options<undefined>);
  fs.chmodSync(bound, 0o600);
  fs.renameSync(bound, socketPath);
  const own = fs.statSync(socketPath).ino;
  const present = () => fs.statSync(socketPath, { throwIfNoEntry: false })?.ino === own;
  return {
    get present() {
      return present();
    },
    async stop(graceMs) {
      if (present()) fs.rmSync(socketPath, { force: true });
      void server.stop(false);
      web.close();
      // stop(false) resolves before answers in flight are sent, so they are counted here.
      const deadline = performance.now() + graceMs;
      while (server.pendingRequests > 0 && performance.now() < deadline) await Bun.sleep(5);
      await server.stop(true);
      lock.release();
    },
  };
}

const LOOK_MS = 5_000;

export interface KeepServingOptions {
  readonly onRenewed: () => void;
  /** Told when serving anew failed; it is tried again at the next look. */
  readonly onTrouble: (error: unknown) => void;
  readonly lookMs?: number;
}

/**
 * Serve, and serve anew when the socket file is taken away: a runtime directory is removed at the last logout, a temporary one by
 * whoever cleans up. Requests in flight then end as if the connection had dropped.
 */
export function keepServing(
  serve: () => SocketServer | Promise<SocketServer>,
  { onRenewed, onTrouble, lookMs = LOOK_MS }: KeepServingOptions,
): Pick<SocketServer, "stop"> {
  let server = Promise.resolve(serve());
  server.catch(onTrouble);
  const current = (): Promise<SocketServer | null> => server.catch(() => null);
  const renew = async (): Promise<void> => {
    const before = await current();
    if (before?.present) return;
    await before?.stop(0);
    server = Promise.resolve(serve());
    await server;
    onRenewed();
  };
  let renewing: Promise<void> = Promise.resolve();
  const timer = setInterval(() => {
    renewing = renewing.then(renew).catch(onTrouble);
  }, lookMs);
  return {
    async stop(graceMs) {
      clearInterval(timer);
      await renewing;
      await (await current())?.stop(graceMs);
    },
  };
}
