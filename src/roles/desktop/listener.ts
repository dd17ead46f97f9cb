import { randomBytes } from "node:crypto";
import fs from "node:fs";
import type { Hono } from "hono";
import type { Secret } from "../../api/identity.ts";
import { serveOnSocket } from "../../api/socket-server.ts";
import type { Paths } from "../../config/paths.ts";
import type { DaemonRecord } from "./address-file.ts";

/** How long answers in flight may take when the daemon stops. */
const STOP_GRACE_MS = 1_000;

/** What the daemon listens on. */
export interface Listener {
  readonly where: string;
  /** What a client has to know of it besides its place; null for a Unix socket. */
  readonly tcp: DaemonRecord["tcp"];
  /** Whether clients can no longer connect to it. */
  lost(): boolean;
  stop(): Promise<void>;
}

/** The app for a listener: what requests need to pass, null where the place is protection enough, and where it is. */
export type AppFor = (access: Secret | null, where: () => string) => Hono;

/** Listen where Unix sockets are, or on a free port of 127.0.0.1 with a new token. */
export const listen = (kind: "unix" | "tcp", paths: Pick<Paths, "desktopSocket">, appFor: AppFor): Listener =>
  kind === "unix" ? onSocket(paths.desktopSocket, appFor) : onLoopback(appFor);

function onSocket(socket: string, appFor: AppFor): Listener {
  const server = serveOnSocket(
    appFor(null, () => socket),
    socket,
  );
  const inode = fs.statSync(socket).ino;
  return {
    where: socket,
    tcp: null,
    lost: () => fs.statSync(socket, { throwIfNoEntry: false })?.ino !== inode,
    stop: () => server.stop(STOP_GRACE_MS),
  };
}

function onLoopback(appFor: AppFor): Listener {
  const token = randomBytes(32).toString("base64url");
  // The address is known only when it listens, and the app must know it before it answers.
  let app: Hono | undefined;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request) => app?.fetch(request) ?? new Response(null, { status: 503 }),
  });
  const host = `127.0.0.1:${server.port}`;
  const url = `http://${host}`;
  app = appFor({ token, host }, () => url);
  return {
    where: url,
    tcp: { url, token },
    lost: () => false,
    async stop() {
      await Promise.race([server.stop(false), Bun.sleep(STOP_GRACE_MS)]);
      await server.stop(true);
    },
  };
}
