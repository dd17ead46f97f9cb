import type { ClusterEntry, ClusterEntryInput } from "../config/clusters.ts";
import { type Address, ClusterClient, type Door, HttpPeer } from "./client.ts";
import type { DesktopStatus, LinkStatus } from "./desktop-views.ts";

/** Everything that can be asked of the desktop daemon. */
export class DesktopClient {
  private readonly http: HttpPeer;

  constructor(address: Address | Door) {
    this.http = new HttpPeer(address);
  }

  /** The worker of a cluster, as the daemon forwards it. */
  cluster(name: string): ClusterClient {
    return new ClusterClient(name, this.http.under(`/clusters/${encodeURIComponent(name)}`));
  }

  status(signal?: AbortSignal): Promise<DesktopStatus> {
    return this.http.json("/status", { signal });
  }

  stop(signal?: AbortSignal): Promise<{ stopping: true }> {
    return this.http.json("/stop", { method: "POST", repeatable: true, signal });
  }

  async clusters(): Promise<ClusterEntry[]> {
    return (await this.http.json<{ clusters: ClusterEntry[] }>("/clusters")).clusters;
  }

  /** @throws RelayError cluster_not_found */
  clusterEntry(name: string): Promise<ClusterEntry> {
    return this.http.json(`/clusters/${encodeURIComponent(name)}`);
  }

  putCluster(entry: ClusterEntryInput): Promise<ClusterEntry> {
    return this.http.json("/clusters", { method: "POST", body: entry, repeatable: true });
  }

  removeCluster(name: string): Promise<ClusterEntry> {
    return this.http.json(`/clusters/${encodeURIComponent(name)}`, { method: "DELETE" });
  }

  async links(signal?: AbortSignal): Promise<LinkStatus[]> {
    return (await this.http.json<{ links: LinkStatus[] }>("/links", { signal })).links;
  }
}
