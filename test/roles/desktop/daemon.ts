import path from "node:path";
import { DesktopClient } from "../../../src/api/client/desktop-client.ts";
import type { Address } from "../../../src/api/client/http-peer.ts";
import { DEFAULT_CAPACITY } from "../../../src/config/cluster-entry.ts";
import { updateClusters } from "../../../src/config/clusters.ts";
import { type Environment, readEnvironment } from "../../../src/config/environment.ts";
import { type Paths, resolvePaths } from "../../../src/config/paths.ts";
import { prepareRunDirectory } from "../../../src/config/run-directory.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { addressOf, readDaemonRecord } from "../../../src/roles/desktop/address-file.ts";
import type { Patience } from "../../../src/roles/desktop/forward.ts";
import { runDesktop } from "../../../src/roles/desktop/run.ts";

/** A daemon that runs in the test's own process. */
export interface TestDaemon {
  readonly paths: Paths;
  readonly env: Environment;
  readonly address: Address;
  readonly client: DesktopClient;
  readonly log: string[];
  /** Settles when the daemon has ended. */
  readonly ended: Promise<void>;
  fetch(route: string, init?: RequestInit): Promise<Response>;
  stop(): Promise<void>;
}

export interface DaemonOptions {
  readonly clusters?: readonly string[];
  readonly listen?: "unix" | "tcp";
  readonly patience?: Patience;
}

export async function startDaemon(
  directory: string,
  { clusters = [], listen = "unix", patience }: DaemonOptions = {},
): Promise<TestDaemon> {
  const env = readEnvironment({ CLIO_RELAY_HOME: path.join(directory, "h") }, directory);
  const paths = resolvePaths(env);
  prepareRunDirectory(paths, env);
  await updateClusters(paths, env, () =>
    clusters.map((name) => ({ name, mode: "local" as const, env_setup: null, worker_capacity: DEFAULT_CAPACITY })),
  );
  const stop = new AbortController();
  const log: string[] = [];
  const ready = Promise.withResolvers<void>();
  const ended = runDesktop(
    {
      paths,
      env,
      listen,
      version: "1.2.3",
      clock: systemClock,
      self: [process.execPath, path.resolve(import.meta.dir, "../../../src/main.ts")],
      caFile: null,
      log: (level, message) => void log.push(`${level}: ${message}`),
      ...(patience === undefined ? {} : { patience }),
      onReady: () => ready.resolve(),
    },
    stop.signal,
  );
  await Promise.race([ready.promise, ended]);
  const address = addressOf(paths, readDaemonRecord(paths, env));
  return {
    paths,
    env,
    address,
    client: new DesktopClient(address),
    log,
    ended,
    fetch: (route, init = {}) =>
      address.kind === "unix"
        ? fetch(`http://relay${route}`, { ...init, unix: address.path } as RequestInit)
        : fetch(`${address.url}${route}`, {
            ...init,
            headers: { authorization: `Bearer ${address.token}`, ...init.headers },
          } as RequestInit),
    async stop() {
      stop.abort();
      await ended;
    },
  };
}
