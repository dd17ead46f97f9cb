import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Hono } from "hono";
import type { Access } from "../../api/listener/access.ts";
import { afterRequest } from "../../api/read-over.ts";
import { serveOnSocket } from "../../api/socket-server.ts";
import { withWebSockets } from "../../api/web-socket.ts";
import type { Paths } from "../../config/paths.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { ListenAddress } from "../sockets/listener.ts";
import type { DaemonRecord } from "./address-file.ts";
import { Front, type FrontBounds, type FrontOptions } from "./front.ts";

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
export type AppFor = (access: Access | null, where: () => string) => Hono;

export interface ListenOptions {
  readonly paths: Pick<Paths, "desktopSocket" | "runDir">;
  /** Of Node's names: Windows has no Unix socket that a front could join connections with. */
  readonly platform: NodeJS.Platform;
  readonly clock: Clock;
  readonly onFault: (error: Error) => void;
}

/** Listen where Unix sockets are, or on a free port of 127.0.0.1 with a new token. */
export async function listen(kind: "unix" | "tcp", options: ListenOptions, appFor: AppFor): Promise<Listener> {
  if (kind === "unix") return onSocket(options.paths.desktopSocket, appFor);
  const token = randomBytes(32).toString("base64url");
  const server = onTcp(
    {
      ...options,
      socket: path.join(options.paths.runDir, "front.sock"),
      address: { host: "127.0.0.1", port: 0 },
      tls: null,
      token: () => token,
      bounds: LOOPBACK_BOUNDS,
    },
    ({ port }) => {
      const host = `127.0.0.1:${port}`;
      const access = {
        token: () => token,
        names: (field: string) => field === host,
        origins: new Set<string>(),
        identity: { token, host },
        foreign: false,
      };
      return appFor(access, () => `http://${host}`);
    },
  );
  const url = `http://127.0.0.1:${server.address.port}`;
  return { where: url, tcp: { url, token }, lost: server.lost, stop: server.stop };
}

/** Every user of the machine can come, and has one address. Whoever has the token was told it by this process. */
const LOOPBACK_BOUNDS: Partial<FrontBounds> = {
  strangers: { all: 64, perAddress: 64 },
  proven: Number.POSITIVE_INFINITY,
  failuresPerMinute: Number.POSITIVE_INFINITY,
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

export type TcpOptions = Omit<ListenOptions, "paths"> & Omit<FrontOptions, "answer">;

/** An app on a TCP port, for whoever shows the token. */
export interface TcpServer {
  readonly address: ListenAddress;
  /** Connections by whether they have shown the token; null where nobody counts. */
  connections(): { readonly unproven: number; readonly proven: number } | null;
  /** Whether nobody can connect to it any more. */
  lost(): boolean;
  /** End the connections that there are. */
  endConnections(): void;
  stop(): Promise<void>;
}

/**
 * Serve on TCP, where strangers' connections are held apart from the owner's.
 *
 * @param appAt the app, once it is known where it is
 * @throws RelayError configuration_error where the address cannot be listened on
 */
export function onTcp(options: TcpOptions, appAt: (address: ListenAddress) => Hono): TcpServer {
  // The address is known only when it listens, and the app must know it before it answers.
  let app: Hono | undefined;
  const answer = (request: Request) => app?.fetch(request) ?? new Response(null, { status: 503 });
  if (options.platform === "win32") return withoutFront(options, answer, (address) => (app = appAt(address)));
  const front = new Front({ ...options, answer });
  app = appAt(front.address);
  const server = serveOnSocket(app, options.socket);
  return {
    address: front.address,
    connections: () => front.connections,
    lost: () => !server.present,
    endConnections: () => front.endProven(),
    async stop() {
      front.close();
      await server.stop(STOP_GRACE_MS);
      await front.drain(STOP_GRACE_MS);
    },
  };
}

/** A connection whose request is refused ends with the answer, but nobody counts them. */
function withoutFront(
  { address, tls }: TcpOptions,
  answer: (request: Request) => Response | Promise<Response>,
  listening: (address: ListenAddress) => void,
): TcpServer {
  const web = withWebSockets((request) => afterRequest(request, answer));
  const serve = (port: number) =>
    Bun.serve({
      hostname: address.host ?? "::",
      port,
      idleTimeout: 0,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      ...(tls === null ? {} : { tls }),
      fetch: web.fetch,
      websocket: web.websocket,
    });
  let server = serve(address.port);
  const at = { host: address.host, port: server.port ?? address.port };
  listening(at);
  return {
    address: at,
    connections: () => null,
    lost: () => false,
    endConnections() {
      void server.stop(true);
      server = serve(at.port);
    },
    async stop() {
      web.close();
      await Promise.race([server.stop(false), Bun.sleep(STOP_GRACE_MS)]);
      await server.stop(true);
    },
  };
}
