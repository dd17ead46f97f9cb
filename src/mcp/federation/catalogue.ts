import fs from "node:fs";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { type RemoteMcpCache, readRemoteMcpCache } from "../../config/remote-mcp-cache.ts";
import { isRelayError } from "../../domain/errors.ts";
import type { Profile } from "../tool.ts";
import type { Projection } from "./federated.ts";
import { projectionOf } from "./projection.ts";

/** What refreshes have found, wherever it is kept. */
export interface RemoteSource {
  /** Another text whenever it is another. */
  stamp(): string;
  /** @throws RelayError configuration_error */
  read(): RemoteMcpCache;
}

/** The file of this installation. */
export function cacheFile(paths: Pick<Paths, "remoteMcpCacheFile">, env: Pick<Environment, "uid" | "platform">): RemoteSource {
  return { stamp: () => fileStamp(paths.remoteMcpCacheFile), read: () => readRemoteMcpCache(paths, env) };
}

export const NO_SOURCE: RemoteSource = { stamp: () => "", read: () => ({ entries: [], damaged: [] }) };

/** What a file is recognised by. */
export function fileStamp(file: string): string {
  const stat = fs.statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? "" : `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
}

const UNREADABLE: RemoteMcpCache = { entries: [], damaged: [] };

/** The tools of servers on clusters, made anew when something about them is another. */
export class RemoteCatalogue {
  #read: { readonly stamp: string; readonly cache: RemoteMcpCache; readonly failure: string | null } | null = null;
  /** When the last one that was shown was over. */
  #over = 0;
  #made: { readonly of: string; readonly registered: string; readonly projection: Projection } | null = null;

  constructor(
    private readonly source: RemoteSource,
    private readonly profile: Profile,
    /** Milliseconds since the epoch. */
    private readonly wallClock: () => number,
    private readonly taken: ReadonlySet<string>,
  ) {}

  /** What is shown now. The same object as before, where nothing is another. */
  projection(entries: readonly ClusterEntry[]): Projection {
    const now = this.wallClock();
    const { stamp, cache, failure } = this.#cache();
    // Most of what there is to know of a cluster changes nothing here.
    const registered = JSON.stringify(entries.filter(({ remote_mcp_servers }) => remote_mcp_servers !== undefined));
    const made = this.#made;
    if (made !== null && made.of === stamp && made.registered === registered && now < made.projection.validUntil) return made.projection;
    const projected = projectionOf(entries, cache, this.profile, now, this.taken);
    const projection = failure === null || registered === "[]" ? projected : withFailure(projected, failure);
    this.#made = { of: stamp, registered, projection };
    return projection;
  }

  /** Another text whenever something may be shown otherwise than before; of the registry nothing is known here. */
  stamp(): string {
    const until = this.#made?.projection.validUntil ?? Number.POSITIVE_INFINITY;
    if (this.wallClock() >= until) this.#over = until;
    return `${this.source.stamp()} ${this.#over}`;
  }

  #cache() {
    const stamp = this.source.stamp();
    if (this.#read?.stamp === stamp) return this.#read;
    try {
      this.#read = { stamp, cache: this.source.read(), failure: null };
    } catch (error) {
      if (!isRelayError(error)) throw error;
      this.#read = { stamp, cache: UNREADABLE, failure: error.message };
    }
    return this.#read;
  }
}

const withFailure = (projection: Projection, message: string): Projection => ({
  ...projection,
  // Whether anything was asked for cannot be known then.
  issues: [
    { cluster: null, server: null, tool: null, reason: "catalogue_unreadable", message },
    ...projection.issues.filter(({ reason }) => reason !== "not_discovered"),
  ],
});
