import fs from "node:fs";
import { DesktopClient } from "../api/client/desktop-client.ts";
import type { ClusterClient } from "../api/client.ts";
import type { ClusterEntry } from "../config/cluster-entry.ts";
import { clusterNames } from "../config/cluster-names.ts";
import { variable } from "../config/environment.ts";
import { type Paths, resolvePaths } from "../config/paths.ts";
import { loadSettings, type Settings } from "../config/settings.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import { isId } from "../domain/id.ts";
import { desktopDoor } from "../roles/desktop/door.ts";
import { chooseCluster, clustersMeant } from "./choose-cluster.ts";
import { endedBySignals } from "./follow/ending.ts";
import type { CliIo } from "./io.ts";
import { WithinJob } from "./within-job.ts";

/** The installation that a command works on, looked up as far as it is needed. */
export class Installation {
  #paths: Paths | undefined;
  #settings: Settings | undefined;
  #desktop: DesktopClient | undefined;

  constructor(private readonly io: CliIo) {}

  get paths(): Paths {
    this.#paths ??= resolvePaths(this.io.env);
    return this.#paths;
  }

  /** @throws RelayError configuration_error */
  get settings(): Settings {
    this.#settings ??= loadSettings(this.io.env, readSettingsFile(this.paths));
    return this.#settings;
  }

  get listen(): "unix" | "tcp" {
    const { local_listen: kind } = this.settings;
    return kind === "auto" ? (this.io.env.platform === "win32" ? "tcp" : "unix") : kind;
  }

  /** The desktop daemon, which is started with the first request that finds nobody; within a job, its worker does without one. */
  get desktop(): DesktopClient {
    this.#desktop ??= this.#opened();
    return this.#desktop;
  }

  #opened(): DesktopClient {
    const { paths, io } = this;
    const { env } = io;
    const door = desktopDoor({
      ...{ paths, env, listen: this.listen, ending: endedBySignals(io) },
      start: async () => {
        const { ensureDesktop } = await import("../roles/desktop/start.ts");
        await ensureDesktop({ paths, env, self: io.self });
      },
    });
    const cluster = variable(env, "CLIO_RELAY_ATTEMPT") === undefined ? undefined : variable(env, "CLIO_RELAY_CLUSTER");
    if (cluster === undefined || !isId(cluster)) return new DesktopClient(door);
    const registered = async () => (await import("../config/clusters.ts")).readClusters(paths, env).clusters;
    return new WithinJob(door, { cluster, socket: paths.workerSocket(cluster), registered });
  }

  /** The registered clusters. Where none ever was, nobody is asked. */
  async clusters(): Promise<readonly ClusterEntry[]> {
    return this.#anyRegistered() ? this.desktop.clusters() : [];
  }

  /** @throws RelayError cluster_not_found */
  async clusterEntry(name: string): Promise<ClusterEntry> {
    await this.#mayExist(name);
    return this.desktop.clusterEntry(name);
  }

  /**
   * Name of the cluster that is meant: the one named, the setting, or the only one.
   *
   * @throws RelayError usage that lists them when it cannot be told
   */
  clusterName(named: string | undefined): Promise<string> {
    return chooseCluster(named, this.settings.default_cluster, () => this.#names(), this.paths.settingsFile);
  }

  /**
   * Names of the clusters that may be meant: the one named, the setting, or all.
   *
   * @throws RelayError usage where there is none
   */
  clustersMeant(named: string | undefined): Promise<readonly string[]> {
    return clustersMeant(named, this.settings.default_cluster, () => this.#names());
  }

  /** Names of the other clusters that are registered. */
  async clustersBeside(name: string): Promise<readonly string[]> {
    return (await this.#names()).map((entry) => entry.name).filter((other) => other !== name);
  }

  /** Names are read here, which takes less than to ask the daemon; whatever is wrong with their file, it says. */
  async #names(): Promise<readonly { readonly name: string }[]> {
    const names = this.#anyRegistered() ? clusterNames(this.paths, this.io.env) : [];
    return names === null ? this.clusters() : names.map((name) => ({ name }));
  }

  /** The worker of that cluster. @throws RelayError cluster_not_found where there is none at all */
  async cluster(named: string | undefined): Promise<ClusterClient> {
    const name = await this.clusterName(named);
    await this.#mayExist(name);
    return this.desktop.cluster(name);
  }

  /** Whether there is a registry. Its content is read by the daemon, and here only where there is none to ask. */
  #anyRegistered(): boolean {
    return fs.lstatSync(this.paths.clustersFile, { throwIfNoEntry: false }) !== undefined;
  }

  async #mayExist(name: string): Promise<void> {
    if (this.#anyRegistered()) return;
    const { clusterNotFound } = await import("../config/clusters.ts");
    throw clusterNotFound(name, []);
  }
}
