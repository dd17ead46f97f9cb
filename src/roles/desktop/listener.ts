import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Hono } from "hono";
import type { Secret } from "../../api/identity.ts";
import { serveOnSocket } from "../../api/socket-server.ts";
import type { Paths } from "../../config/paths.ts";
import type { DaemonRecord } from "./address-file.ts";
import { listenInFront } from "./loopback-front.ts";

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

/**
 * Listen where Unix sockets are, or on a free port of 127.0.0.1 with a new token.
 *
 * @param platform of Node's names: Windows has no Unix socket that a front could join connections with
 */
export const listen = async (
  kind: "unix" | "tcp",
  paths: Pick<Paths, "desktopSocket" | "runDir">,
  platform: NodeJS.Platform,
  appFor: AppFor,
): Promise<Listener> => {
  if (kind === "unix") return onSocket(paths.desktopSocket, appFor);
  return platform === "win32" ? onLoopback(appFor) : behindFront(path.join(paths.runDir, "front.sock"), appFor);
};

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

const newToken = (): string => randomBytes(32).toString("base64url");

/** On loopback, where strangers' connections are held apart from the owner's. */
async function behindFront(socket: string, appFor: AppFor): Promise<Listener> {
  const token = newToken();
  // The address is known only when it listens, and the app must know it before it answers.
  let app: Hono | undefined;
  const answer = (request: Request) => app?.fetch(request) ?? new Response(null, { status: 503 });
  const front = await listenInFront({ token, socket, answer });
  const host = `127.0.0.1:${front.port}`;
  const url = `http://${host}`;
  app = appFor({ token, host }, () => url);
  const server = serveOnSocket(app, socket);
  return {
    where: url,
    tcp: { url, token },
    lost: () => !server.present,
    async stop() {
      front.close();
      await server.stop(STOP_GRACE_MS);
      await front.drain(STOP_GRACE_MS);
    },
  };
}

/** On loopback without a front: a connection whose request is refused ends with the answer, but nobody counts them. */
function onLoopback(appFor: AppFor): Listener {
  const token = newToken();
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
