import type { ClusterClient } from "../../api/client.ts";
import { isRelayError } from "../../domain/errors.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { refuseOtherDirectories } from "../worker/directories.ts";

/**
 * Where the queue of a cluster lies, if that is on this machine. A cluster elsewhere may have a directory of its name here all the same.
 *
 * @throws RelayError configuration_error when the worker that runs for it here keeps its queue elsewhere than a variable says
 */
export async function ownCoreDir(io: Pick<CliIo, "env">, relay: Installation, cluster: ClusterClient): Promise<string | null> {
  const { mode } = await relay.clusterEntry(cluster.name);
  if (mode !== "local") return null;
  try {
    for (const running of (await cluster.workers()).workers) refuseOtherDirectories(io.env, relay.paths, running);
  } catch (error) {
    if (!isRelayError(error, "worker_not_running")) throw error;
  }
  return relay.paths.coreDir(cluster.name);
}
