import type { ClusterEntry } from "../../config/cluster-entry.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { Access } from "../listener/access.ts";
import type { HostTask } from "./host-views.ts";
import type { AttendedEvent, AttendedRequest, LinkStatus } from "./link-views.ts";
import type { ListenerControl } from "./listener-views.ts";
import type { PairClusterRequest } from "./pairing-views.ts";
import type { DesktopStatus } from "./views.ts";

/** What the desktop's app needs of the process around it. */
export interface DesktopServices {
  readonly version: string;
  /** null on a Unix socket, whose permissions say who may connect. */
  readonly access: Access | null;
  status(): DesktopStatus;
  readonly listener: ListenerControl;
  /** What is counted, in Prometheus' text format. */
  metrics(): Promise<string>;
  /** Where the registry is kept, absolute. */
  readonly clustersFile: string;
  /** The registered clusters. Throws configuration_error when the registry cannot be read. */
  clusters(): readonly ClusterEntry[];
  /**
   * Add or change an entry; the answer is the entry as it is kept.
   *
   * @param allow throws where the entry that there is, null for none, may not be replaced; nothing comes in between
   */
  putCluster(entry: ClusterEntry, allow: (current: ClusterEntry | null) => void): Promise<ClusterEntry>;
  /** @throws RelayError cluster_not_found */
  removeCluster(name: string): Promise<ClusterEntry>;
  readonly clock: Clock;
  links(patienceMs?: number): Promise<LinkStatus[]>;
  /**
   * Bring a cluster's link up for somebody who is there. What happens comes to whoever follows; when the one who began leaves, it is given up.
   *
   * @throws RelayError cluster_not_found, state_conflict
   */
  connect(cluster: string, request: AttendedRequest, signal: AbortSignal): Promise<(signal: AbortSignal) => AsyncGenerator<AttendedEvent>>;
  /**
   * Do something on the host of a cluster's worker, for somebody who is there.
   *
   * @throws RelayError cluster_not_found; configuration_error for a cluster of this machine; state_conflict
   */
  host(
    cluster: string,
    task: HostTask,
    request: AttendedRequest,
    signal: AbortSignal,
  ): Promise<(signal: AbortSignal) => AsyncGenerator<AttendedEvent>>;
  /**
   * Have this desktop's key let in by the worker that made a code, and keep the entry by which it is met, in place of one of that name.
   *
   * @throws RelayError pairing_code_invalid, pairing_refused, host_key_changed; what meeting at a relay-host fails with; state_conflict
   */
  pair(cluster: string, request: PairClusterRequest, signal: AbortSignal): Promise<ClusterEntry>;
  /** @throws RelayError cluster_not_found */
  disconnect(cluster: string): Promise<LinkStatus>;
  /** @param answer null: the person does not want to. @throws RelayError not_found */
  answerPrompt(cluster: string, id: string, answer: string | null): void;
  /**
   * Send a request on to a cluster's worker and return its answer as it is, while it comes.
   *
   * @param target path and query as the worker's app knows them
   * @throws RelayError cluster_not_found, worker_not_running, link_down, authorization_required, version_mismatch
   */
  forward(cluster: string, target: string, request: Request): Promise<Response>;
  stop(): void;
}
