import type { Installation } from "../installation.ts";

/** Where the queue of a cluster lies, if that is on this machine. A cluster elsewhere may have a directory of its name here all the same. */
export async function ownCoreDir(relay: Installation, cluster: string): Promise<string | null> {
  const { mode } = await relay.clusterEntry(cluster);
  return mode === "local" ? relay.paths.coreDir(cluster) : null;
}
