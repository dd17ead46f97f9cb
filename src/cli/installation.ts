import type { ClusterClient } from "../api/client.ts";
import { DesktopClient } from "../api/desktop-client.ts";
import { type Paths, resolvePaths } from "../config/paths.ts";
import { loadSettings, type Settings } from "../config/settings.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import { RelayError } from "../domain/errors.ts";
import { desktopDoor } from "../roles/desktop/door.ts";
import type { CliIo } from "./io.ts";

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

  /** The desktop daemon, which is started with the first request that finds nobody. */
  get desktop(): DesktopClient {
    this.#desktop ??= new DesktopClient(
      desktopDoor({
        paths: this.paths,
        env: this.io.env,
        listen: this.listen,
        start: async () => {
          const { ensureDesktop } = await import("../roles/desktop/start.ts");
          await ensureDesktop({ paths: this.paths, env: this.io.env, self: this.io.self });
        },
      }),
    );
    return this.#desktop;
  }

  /**
   * Name of the cluster that is meant: the one named, the setting, or the only one.
   *
   * @throws RelayError usage that lists them when it cannot be told
   */
  async clusterName(named: string | undefined): Promise<string> {
    const name = named ?? this.settings.default_cluster;
    if (name !== null) return name;
    const clusters = (await this.desktop.clusters()).map((entry) => entry.name);
    if (clusters.length === 1) return clusters[0]!;
    throw new RelayError(
      "usage",
      clusters.length === 0 ? "there is no cluster yet" : `--cluster is needed: ${clusters.slice(0, 20).join(", ")}`,
      { clusters: clusters.slice(0, 20) },
      clusters.length === 0 ? "clio-relay init" : "or set CLIO_RELAY_CLUSTER",
    );
  }

  /** The worker of that cluster. */
  async cluster(named: string | undefined): Promise<ClusterClient> {
    return this.desktop.cluster(await this.clusterName(named));
  }
}
