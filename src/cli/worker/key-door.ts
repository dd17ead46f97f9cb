import type { KeyServices } from "../../api/key-services.ts";
import { clusterEntry } from "../../config/clusters.ts";
import { prepareRunDirectory } from "../../config/run-directory.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { refuseOtherDirectories } from "./directories.ts";
import { clusterElsewhere, localCluster, localWorker, runningWorker } from "./local-worker.ts";

export interface KeyDoor {
  readonly cluster: string;
  /** Whether its worker is reached over a link. */
  readonly elsewhere: boolean;
  readonly keys: Pick<KeyServices, "list" | "revoke" | "rotate">;
}

/**
 * The keys of a cluster's worker: by the worker while one answers, which ends sessions at once; by its files while none does; over the link where it is elsewhere.
 *
 * @throws RelayError usage, cluster_not_found, configuration_error
 */
export async function keyDoor(io: CliIo, relay: Installation, named: string | undefined): Promise<KeyDoor> {
  const elsewhere = await clusterElsewhere(io, relay, named);
  if (elsewhere !== null) return { cluster: elsewhere, elsewhere: true, keys: over(relay.desktop.cluster(elsewhere)) };
  const { name, registry } = await localCluster(io, relay, named);
  prepareRunDirectory(relay.paths, io.env);
  const worker = localWorker(io, relay, name);
  const running = await runningWorker(worker);
  if (running === null) {
    // The worker of a cluster that was forgotten may run on; files are of those that there are.
    clusterEntry(registry, name);
    return { cluster: name, elsewhere: false, keys: ofFiles(relay.paths.coreDir(name), `clio-relay ${name}`) };
  }
  refuseOtherDirectories(io.env, relay.paths, running);
  return { cluster: name, elsewhere: false, keys: over(worker) };
}

const over = (worker: ReturnType<typeof localWorker>): KeyDoor["keys"] => ({
  list: () => worker.keys(),
  revoke: (key) => worker.revokeKey(key),
  rotate: (overlapSeconds) => worker.rotateHostKey(overlapSeconds),
});

const ofFiles = (coreDir: string, comment: string): KeyDoor["keys"] => ({
  list: async () => (await import("../../roles/worker/key-service.ts")).keysOf(coreDir),
  async revoke(key) {
    const { revokeClient } = await import("../../roles/worker/link-keys.ts");
    return { revoked: await revokeClient(coreDir, key), ended_sessions: null };
  },
  rotate: async (overlapSeconds) => (await import("../../roles/worker/host-key.ts")).rotateHostKey(coreDir, comment, overlapSeconds),
});
