import type { DesktopClient } from "../api/client/desktop-client.ts";
import type { ClusterEntry } from "../config/cluster-entry.ts";
import type { Metadata } from "../domain/primitives.ts";
import { watchValue } from "../lib/waiting/watched-value.ts";
import { type Listed, listTools, TOOLS } from "./catalogue.ts";
import { Clusters } from "./clusters.ts";
import { toolOf } from "./dispatch.ts";
import { callEnd } from "./federation/call-end.ts";
import { fileStamp, NO_SOURCE, RemoteCatalogue, type RemoteSource } from "./federation/catalogue.ts";
import { catalogChanged, type Listing, listingOf } from "./federation/listing.ts";
import { remoteTool } from "./federation/remote-tool.ts";
import { JobWatch } from "./job-watch.ts";
import type { LocalFiles } from "./local-files.ts";
import type { EndOf } from "./tasks/projection.ts";
import { Tasks } from "./tasks/projection.ts";
import type { Profile, Tool } from "./tool.ts";

/** How often is looked whether the tools are others, in milliseconds. */
const LOOK_MS = 2_000;

export interface ServiceOptions {
  readonly desktop: DesktopClient;
  readonly profile: Profile;
  readonly version: string;
  /** Milliseconds of a clock that never steps. */
  readonly now: () => number;
  /** Milliseconds since the epoch. */
  readonly wallClock?: () => number;
  /** What is known of servers on clusters; nothing, where it is left out. */
  readonly remote?: RemoteSource;
  /** Tools in place of the program's own. */
  readonly tools?: readonly Tool[];
  /** How jobs of some kinds answer their calls when they have ended. */
  readonly endOf?: EndOf;
  /** What the metadata of a submission to a cluster say of where it comes from. */
  readonly origin?: (cluster: string) => Metadata;
  /** Files of this machine that may come along with a job; null: none. */
  readonly files?: LocalFiles | null;
  /** Something of ours went wrong, which no answer says. */
  readonly onFault?: (error: Error) => void;
}

/** What every connection of one endpoint shares. */
export class McpService {
  readonly profile: Profile;
  readonly version: string;
  readonly clusters: Clusters;
  readonly tasks: Tasks;
  readonly watch: JobWatch;
  readonly tools: readonly Tool[];
  readonly now: () => number;
  readonly files: LocalFiles | null;
  readonly onFault: (error: Error) => void;
  readonly #remote: RemoteCatalogue;
  /** What whoever hears of changes only has to hear of no more: the revision of the first listing, and then of each change. */
  #told: string | null = null;
  /** The last listing, and of what it is. */
  #listed: { readonly entries: readonly ClusterEntry[]; readonly fixed: string; readonly listing: Listing } | null = null;

  constructor(options: ServiceOptions) {
    const { desktop, profile, version, now, tools = TOOLS, endOf = callEnd, origin = () => ({}), onFault = () => undefined } = options;
    this.profile = profile;
    this.version = version;
    this.now = now;
    this.tools = tools;
    this.files = options.files ?? null;
    this.onFault = onFault;
    this.clusters = new Clusters(desktop, now, origin);
    this.tasks = new Tasks(this.clusters, endOf);
    this.watch = new JobWatch();
    const { remote = NO_SOURCE, wallClock = Date.now } = options;
    this.#remote = new RemoteCatalogue(remote, profile, wallClock, new Set(tools.map(({ name }) => name)));
  }

  /** The tools of the profile, with the clusters as the daemon names them, or did last. No cluster is asked. */
  async listing(signal: AbortSignal): Promise<Listing> {
    const listing = this.#listingOf(await this.clusters.known(signal));
    this.#told ??= listing.revision;
    return listing;
  }

  #listingOf(entries: readonly ClusterEntry[]): Listing {
    const projection = this.#remote.projection(entries);
    const known = this.#listed?.listing.projection === projection ? this.#listed : null;
    if (known?.entries === entries) return known.listing;
    const tools: readonly Listed[] = listTools(this.profile, entries, this.tools);
    const fixed = JSON.stringify(tools);
    const listing = known?.fixed === fixed ? known.listing : listingOf(tools, projection);
    this.#listed = { entries, fixed, listing };
    return listing;
  }

  /**
   * The tool of a name. One of a server on a cluster has to be that which was listed.
   *
   * @param bound revision of what the caller has listed; null: nothing
   * @throws RelayError tool_not_found, mcp_catalog_changed
   */
  async tool(name: string, bound: string | null, signal: AbortSignal): Promise<Tool> {
    // What is always there is exempt: it means the same in every listing.
    if (this.tools.some((tool) => tool.name === name)) return toolOf(this.profile, name, this.tools);
    const { projection, revision } = await this.listing(signal);
    const remote = projection.byAlias.get(name);
    if (bound !== null && bound !== revision) throw catalogChanged(revision);
    if (remote === undefined) return toolOf(this.profile, name, []);
    return remoteTool(remote, revision);
  }

  /**
   * Call `changed` when the tools may be others: most of what is written down about clusters and their servers changes nothing that is listed.
   *
   * @param clustersFile the registry: each cluster is a value that tools take
   * @param changed with the revision of what is listed now, null where the daemon does not say it, and whether it is another than when this was called last
   * @returns how to stop
   */
  watchTools(clustersFile: string, changed: (revision: string | null, isOther: boolean) => void): () => void {
    const over = new AbortController();
    const look = async (): Promise<void> => {
      const revision = await this.clusters.entriesAnew(over.signal).then(
        (entries) => this.#listingOf(entries).revision,
        () => null,
      );
      if (over.signal.aborted) return;
      const isOther = revision === null || (this.#told !== null && revision !== this.#told);
      this.#told = revision ?? this.#told;
      changed(revision, isOther);
    };
    const stop = watchValue(
      () => `${fileStamp(clustersFile)} ${this.#remote.stamp()}`,
      () => void look(),
      LOOK_MS,
    );
    return () => {
      over.abort();
      stop();
    };
  }

  close(): void {
    this.watch.close();
  }
}
