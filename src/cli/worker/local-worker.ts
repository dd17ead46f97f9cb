import { HttpPeer } from "../../api/client/http-peer.ts";
import { ClusterClient } from "../../api/client.ts";
import { type Registry, readClusters } from "../../config/clusters.ts";
import { mayHaveWorkers } from "../../config/environment.ts";
import { checkRunDirectory } from "../../config/run-directory.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import { chooseCluster } from "../choose-cluster.ts";
import { endedBySignals } from "../follow/ending.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

/** How long a worker may take to say what it is. */
const ANSWER_MS = 3_000;

interface Chosen {
  readonly name: string;
  readonly registry: Registry;
}

/** The cluster that is meant, wherever its worker runs; from the registry's file: no daemon is needed. @throws RelayError usage, configuration_error */
async function registered(io: Pick<CliIo, "env">, relay: Installation, named: string | undefined): Promise<Chosen & { mode: string }> {
  const registry = readClusters(relay.paths, io.env);
  const name = await chooseCluster(
    named,
    relay.settings.default_cluster,
    () => Promise.resolve(registry.clusters),
    relay.paths.settingsFile,
  );
  return { name, registry, mode: registry.clusters.find((one) => one.name === name)?.mode ?? "local" };
}

/** The name of the cluster that is meant, where its worker runs on another host; null where it is on this machine. @throws RelayError usage, configuration_error */
export async function clusterElsewhere(io: Pick<CliIo, "env">, relay: Installation, named: string | undefined): Promise<string | null> {
  const { name, mode } = await registered(io, relay, named);
  return mode === "local" ? null : name;
}

/** The cluster whose worker on this machine is meant. @throws RelayError usage, configuration_error, platform_unsupported */
export async function localCluster(io: Pick<CliIo, "env">, relay: Installation, named: string | undefined): Promise<Chosen> {
  const { name, registry, mode } = await registered(io, relay, named);
  if (mode !== "local") {
    throw new RelayError("configuration_error", `the worker of ${name} does not run on this machine`, { cluster: name, mode });
  }
  if (!mayHaveWorkers(io.env)) {
    throw new RelayError("platform_unsupported", `a worker needs Linux, and this is ${io.env.platform}`, { platform: io.env.platform });
  }
  return { name, registry };
}

/** The worker of a cluster of this machine, on its own socket. @throws RelayError resource_ownership_refused */
export function localWorker(io: Pick<CliIo, "env" | "onSignal">, relay: Installation, name: string): ClusterClient {
  checkRunDirectory(relay.paths, io.env);
  const address = { kind: "unix", path: relay.paths.workerSocket(name) } as const;
  const door = { address: () => address, reopen: () => Promise.resolve(false), ending: endedBySignals(io) };
  return new ClusterClient(name, new HttpPeer(door));
}

/** What a running worker says of itself; null when none does. */
export async function runningWorker(worker: ClusterClient): Promise<WorkerStatus | null> {
  const limit = AbortSignal.timeout(ANSWER_MS);
  try {
    return (await worker.workers(limit)).workers[0] ?? null;
  } catch (error) {
    if (limit.aborted || isRelayError(error)) return null;
    throw error;
  }
}

/** The command that makes a worker take what was changed; `options` as `worker start` takes them. */
export const restartCommand = (name: string, options: readonly string[] = []): string =>
  `clio-relay worker stop --cluster ${name} && ${["clio-relay worker start --cluster", name, ...options].join(" ")}`;
