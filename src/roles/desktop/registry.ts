import fs from "node:fs";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { clusterEntry, clusterNotFound, readClusters, updateClusters } from "../../config/clusters.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";

/** The cluster registry, read again whenever its file has changed. */
export class ClusterRegistry {
  #seen = "";
  #clusters: readonly ClusterEntry[] = [];

  constructor(
    private readonly paths: Paths,
    private readonly env: Environment,
  ) {}

  /** @throws RelayError configuration_error while the file cannot be used */
  all(): readonly ClusterEntry[] {
    const stat = fs.statSync(this.paths.clustersFile, { throwIfNoEntry: false, bigint: true });
    const stamp = stat === undefined ? "none" : `${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
    if (stamp !== this.#seen) {
      this.#clusters = readClusters(this.paths, this.env).clusters;
      this.#seen = stamp;
    }
    return this.#clusters;
  }

  /** @throws RelayError cluster_not_found, configuration_error */
  entry(name: string): ClusterEntry {
    return clusterEntry({ clusters: this.all() }, name);
  }

  /** @param allow throws where the entry that there is, null for none, may not be replaced */
  async put(entry: ClusterEntry, allow: (current: ClusterEntry | null) => void): Promise<ClusterEntry> {
    await updateClusters(this.paths, this.env, (clusters) => {
      const current = clusters.find(({ name }) => name === entry.name);
      allow(current ?? null);
      return current === undefined ? [...clusters, entry] : clusters.map((one) => (one === current ? entry : one));
    });
    return entry;
  }

  /** Change an entry, if it is still there. */
  async update(name: string, change: (known: ClusterEntry) => ClusterEntry): Promise<void> {
    await updateClusters(this.paths, this.env, (clusters) => clusters.map((one) => (one.name === name ? change(one) : one)));
  }

  async remove(name: string): Promise<ClusterEntry> {
    let removed: ClusterEntry | undefined;
    await updateClusters(this.paths, this.env, (clusters) => {
      removed = clusters.find((one) => one.name === name);
      return clusters.filter((one) => one !== removed);
    });
    if (removed === undefined) {
      throw clusterNotFound(
        name,
        this.all().map((one) => one.name),
      );
    }
    return removed;
  }
}
