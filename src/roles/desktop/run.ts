import { randomBytes } from "node:crypto";
import fs from "node:fs";
import type { Hono } from "hono";
import { desktopApp } from "../../api/desktop-app.ts";
import { serveOnSocket } from "../../api/socket-server.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { type Clock, timestamp } from "../../lib/clock.ts";
import { tryLock } from "../../lib/file-lock.ts";
import { self } from "../../lib/process-identity.ts";
import { readDaemonRecord, removeDaemonRecord, writeDaemonRecord } from "./address-file.ts";
import { forwardToSocket, PATIENCE, type Patience } from "./forward.ts";
import { linkStates } from "./links.ts";
import type { Level } from "./log-file.ts";
import { ClusterRegistry } from "./registry.ts";

/** How long answers in flight may take when the daemon stops. */
const STOP_GRACE_MS = 1_000;
const LOOK_MS = 60_000;

export interface DesktopOptions {
  readonly paths: Paths;
  readonly env: Environment;
  readonly listen: "unix" | "tcp";
  readonly version: string;
  readonly clock: Clock;
  readonly log: (level: Level, message: string) => void;
  readonly patience?: Patience;
  /** Called when it answers. */
  readonly onReady?: (where: string) => void;
}

/**
 * Run the desktop daemon until the signal is aborted, somebody asks it to stop, or its socket is taken away. Keeps nothing of
 * the caller: no terminal, no working directory, no agent.
 *
 * @throws RelayError already_running when another process is the daemon, resource_ownership_refused when the place for the
 *   socket is not the user's own
 */
export async function runDesktop(options: DesktopOptions, signal: AbortSignal): Promise<void> {
  const { paths, env, clock, version, log } = options;
  prepareRunDirectory(paths, env);
  const lock = tryLock(paths.desktopLock);
  if (lock === null) {
    const pid = readDaemonRecord(paths, env)?.process.pid;
    throw new RelayError(
      "already_running",
      `the desktop daemon runs already${pid === undefined ? "" : `, as process ${pid}`}`,
      pid === undefined ? {} : { pid },
    );
  }
  const stop = new AbortController();
  const registry = new ClusterRegistry(paths, env);
  const started = timestamp(clock);
  const identity = self();
  let active = 0;
  try {
    const server = listen(options, (access, where) =>
      desktopApp(
        {
          version,
          access,
          status: () => ({
            version,
            process: identity,
            started_at: started,
            socket: where(),
            ...namesOf(registry),
            active_requests: active,
          }),
          clusters: () => registry.all(),
          putCluster: (entry) => registry.put(entry),
          removeCluster: (name) => registry.remove(name),
          links: () => linkStates(registry.all(), paths.workerSocket),
          async forward(name, target, request) {
            const { name: cluster } = registry.entry(name);
            active++;
            try {
              return await forwardToSocket(cluster, paths.workerSocket(cluster), target, request, options.patience ?? PATIENCE);
            } finally {
              active--;
            }
          },
          // The answer goes out first.
          stop: () => void setTimeout(() => stop.abort(), 10),
        },
        (error) => log("error", error instanceof Error ? (error.stack ?? error.message) : String(error)),
      ),
    );
    const record = { process: identity, version, tcp: server.tcp };
    writeDaemonRecord(paths, record);
    log("info", `desktop ${version} runs as process ${process.pid} on ${server.where}`);
    options.onReady?.(server.where);
    const unwatch = watchDirectory(paths.runDir, () => {
      if (stop.signal.aborted || !server.lost()) return;
      log("error", `${server.where} was taken away`);
      stop.abort();
    });
    await aborted(AbortSignal.any([signal, stop.signal]));
    unwatch();
    await server.stop();
    removeDaemonRecord(paths, env, record);
    log("info", "stopped");
  } finally {
    lock.release();
  }
}

/** The status must be there to be read when the registry is what is wrong. */
function namesOf(registry: ClusterRegistry): { clusters: string[]; registry_error: string | null } {
  try {
    return { clusters: registry.all().map(({ name }) => name), registry_error: null };
  } catch (error) {
    if (!isRelayError(error)) throw error;
    return { clusters: [], registry_error: error.message };
  }
}

/** Call `look` whenever something in a directory changes, and once a minute, for file systems that do not tell. */
function watchDirectory(directory: string, look: () => void): () => void {
  const timer = setInterval(look, LOOK_MS);
  let watcher: fs.FSWatcher | undefined;
  try {
    watcher = fs.watch(directory, look);
    watcher.on("error", () => watcher?.close());
  } catch {
    // As many watches as the system gives are in use.
  }
  return () => {
    clearInterval(timer);
    watcher?.close();
  };
}

interface Listener {
  readonly where: string;
  readonly tcp: { readonly url: string; readonly token: string } | null;
  /** Whether clients can no longer find it. */
  lost(): boolean;
  stop(): Promise<void>;
}

type AppFor = (access: { token: string; host: string } | null, where: () => string) => Hono;

function listen({ listen: kind, paths }: DesktopOptions, appFor: AppFor): Listener {
  if (kind === "unix") {
    const server = serveOnSocket(
      appFor(null, () => paths.desktopSocket),
      paths.desktopSocket,
    );
    const inode = fs.statSync(paths.desktopSocket).ino;
    return {
      where: paths.desktopSocket,
      tcp: null,
      lost: () => fs.statSync(paths.desktopSocket, { throwIfNoEntry: false })?.ino !== inode,
      stop: () => server.stop(STOP_GRACE_MS),
    };
  }
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

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
