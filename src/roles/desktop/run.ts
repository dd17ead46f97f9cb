import fs from "node:fs";
import type { Hono } from "hono";
import { desktopApp } from "../../api/desktop/app.ts";
import type { ListenerControl } from "../../api/desktop/listener-views.ts";
import type { DesktopServices } from "../../api/desktop/services.ts";
import type { Access } from "../../api/listener/access.ts";
import type { Environment } from "../../config/environment.ts";
import { removeRoom } from "../../config/frp-room.ts";
import type { Paths } from "../../config/paths.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import type { ProcessIdentity } from "../../domain/attempt.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { DirectoryWatch } from "../../lib/files/directory-watch.ts";
import { tryLock } from "../../lib/files/file-lock.ts";
import { self } from "../../lib/system/process-identity.ts";
import { aborted } from "../../lib/waiting/aborted.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import type { Level } from "../log-line.ts";
import { stderrFile } from "../stderr-file.ts";
import { type DaemonRecord, isPublished, readDaemonRecord, removeDaemonRecord, writeDaemonRecord } from "./address-file.ts";
import { ApiListener } from "./api-listener.ts";
import { PATIENCE, type Patience } from "./forward.ts";
import { Links } from "./links.ts";
import { type AppFor, listen } from "./listener.ts";
import { desktopMetrics } from "./metrics.ts";
import { ClusterRegistry } from "./registry.ts";

/** How often the daemon looks whether it can be found, besides each time that the system tells of a change. */
const LOOK_MS = 60_000;

export interface DesktopOptions {
  readonly paths: Paths;
  readonly env: Environment;
  readonly listen: "unix" | "tcp";
  readonly version: string;
  readonly clock: Clock;
  /** How this program is run: the executable, or the runtime and the script. */
  readonly self: readonly string[];
  readonly log: (level: Level, message: string) => void;
  readonly patience?: Patience;
  /** Connections with the token that the API on TCP takes at a time. */
  readonly apiConnections?: number;
  /** File of certification authorities that are trusted besides the system's; null for none. */
  readonly caFile: string | null;
  /** Called when it answers. */
  readonly onReady?: (where: string) => void;
}

/**
 * Run the desktop daemon until the signal is aborted, somebody asks it to stop, or its place is taken away. Keeps nothing of
 * the caller: no terminal, no working directory, no agent.
 *
 * @throws RelayError already_running when another process is the daemon, resource_ownership_refused when the place for the
 *   socket is not the user's own
 */
export async function runDesktop(options: DesktopOptions, signal: AbortSignal): Promise<void> {
  const { paths, env, version, clock, log, patience = PATIENCE } = options;
  prepareRunDirectory(paths, env);
  const lock = tryLock(paths.desktopLock);
  if (lock === null) throw alreadyRunning(readDaemonRecord(paths, env)?.process.pid);
  const holding = fileAt(paths.desktopLock);
  const stop = new AbortController();
  const identity = self();
  try {
    const registry = new ClusterRegistry(paths, env);
    const links = new Links({ registry, paths, env, version, clock, patience, log, self: options.self, caFile: options.caFile });
    const app: AppFor = (access, where) => appWith(access, where, api);
    const api = new ApiListener({
      paths,
      env,
      clock,
      connections: options.apiConnections ?? LIMITS.apiConnections,
      log,
      appFor: app,
    });
    const appWith = appFor(options, registry, links, identity, stop);
    const fault = (error: Error): void => log("error", error.stack ?? error.message);
    const server = await listen(options.listen, { paths, platform: env.platform, clock, onFault: fault }, app);
    const record: DaemonRecord = { process: identity, version, tcp: server.tcp };
    writeDaemonRecord(paths, record);
    log("info", `desktop ${version} runs as process ${process.pid} on ${server.where}`);
    await api.resume();
    options.onReady?.(server.where);
    startLinks(links, log);
    let published = true;
    const look = (after: "change" | "time"): void => {
      if (stop.signal.aborted) return;
      // Whoever comes next gets a lock on a new file, and is the daemon from then on.
      if (server.lost() || fileAt(paths.desktopLock) !== holding) {
        log("error", `${server.where} was taken away`);
        stop.abort();
        return;
      }
      // A try that fails is a change in the directory, too; the next one comes with the time.
      if (published || after === "time") published = publish(options, record);
    };
    const watch = new DirectoryWatch(() => look("change"));
    watch.move(paths.runDir);
    const stderr = stderrFile(paths.desktopStderr);
    const timer = setInterval(() => {
      stderr?.look();
      look("time");
      void api.look();
    }, LOOK_MS);
    await aborted(AbortSignal.any([signal, stop.signal]));
    clearInterval(timer);
    watch.close();
    await links.close();
    await Promise.all([server.stop(), api.close()]);
    removeDaemonRecord(paths, env, record);
    log("info", "stopped");
  } finally {
    lock.release();
  }
}

/** A registry that cannot be read is told by whoever asks for it, and keeps nobody from asking. */
function startLinks(links: Links, log: DesktopOptions["log"]): void {
  try {
    links.start();
  } catch (error) {
    log("error", error instanceof Error ? error.message : String(error));
  }
}

const alreadyRunning = (pid: number | undefined): RelayError =>
  new RelayError(
    "already_running",
    `the desktop daemon runs already${pid === undefined ? "" : `, as process ${pid}`}`,
    pid === undefined ? {} : { pid },
  );

/** Which file has a name; null when none has. */
function fileAt(file: string): string | null {
  const stat = fs.statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`;
}

/**
 * Write the record again where it is gone or not what this daemon wrote: nobody else may, as long as this one holds the lock.
 *
 * @returns whether it is there
 */
function publish({ paths, env, log }: DesktopOptions, record: DaemonRecord): boolean {
  try {
    if (isPublished(paths, env, record)) return true;
    writeDaemonRecord(paths, record);
    log("warn", `${paths.desktopAddress} was gone or changed, and is written again`);
    return true;
  } catch (error) {
    log("error", `${paths.desktopAddress} cannot be written again: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}

type AppWith = (access: Access | null, where: () => string, listener: ListenerControl) => Hono;

/** The app, once it is known what it listens on. */
function appFor(
  options: DesktopOptions,
  registry: ClusterRegistry,
  links: Links,
  process: ProcessIdentity,
  stop: AbortController,
): AppWith {
  const { version, log } = options;
  const started_at = timestamp(options.clock);
  let active = 0;
  const services: Omit<DesktopServices, "access" | "status" | "listener" | "metrics"> = {
    version,
    clustersFile: options.paths.clustersFile,
    clusters: () => registry.all(),
    async putCluster(entry, allow) {
      const kept = await registry.put(entry, allow);
      await links.entryChanged(kept);
      return kept;
    },
    async removeCluster(name) {
      const removed = await registry.remove(name);
      await links.forget(name);
      removeRoom(options.paths, name);
      return removed;
    },
    clock: options.clock,
    links: (patienceMs) => links.states(patienceMs),
    connect: (name, request, signal) => links.connect(name, request, signal),
    host: (name, task, request, signal) => links.host(name, task, request, signal),
    pair: (name, request, signal) => links.pair(name, request, signal),
    disconnect: (name) => links.disconnect(name),
    answerPrompt: (name, id, answer) => links.answer(name, id, answer),
    async forward(name, target, request) {
      active++;
      try {
        return await links.forward(name, target, request);
      } finally {
        active--;
      }
    },
    // The answer goes out first.
    stop: () => void setTimeout(() => stop.abort(), 10),
  };
  return (access, where, listener) =>
    desktopApp(
      {
        ...services,
        access,
        listener,
        metrics: async () =>
          desktopMetrics({ version, forwarding: active, links: await links.states(), dials: links.dials, listener: listener.status() }),
        status: () => ({
          version,
          process,
          started_at,
          socket: where(),
          clusters_file: services.clustersFile,
          ...namesOf(registry),
          active_requests: active,
        }),
      },
      (error) => log("error", error instanceof Error ? (error.stack ?? error.message) : String(error)),
    );
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
