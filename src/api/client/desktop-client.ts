import type { ListenerRequestInput } from "../../config/api-listener.ts";
import type { ClusterEntry, ClusterEntryInput } from "../../config/cluster-entry.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { ClusterClient } from "../client.ts";
import type { HostTaskName, HostTaskOptions } from "../desktop/host-views.ts";
import type { AttendedEvent, AttendedRequest, LinkStatus } from "../desktop/link-views.ts";
import type { ListenerStatus } from "../desktop/listener-views.ts";
import type { PairClusterRequest } from "../desktop/pairing-views.ts";
import type { DesktopStatus } from "../desktop/views.ts";
import { type Address, type Door, failureOf, HttpPeer, type Turn } from "./http-peer.ts";

/** How often a change is made anew because somebody else was faster. */
const CHANGE_TRIES = 20;

// What checks an answer is loaded when the request is on its way.
const entries = () => import("../../config/cluster-entry.ts");
const entry = async () => (await entries()).ClusterEntry;
const desktop = () => import("../desktop/views.ts");
const links = () => import("../desktop/link-views.ts");
const link = async () => (await links()).LinkStatus;
const listener = async () => (await import("../desktop/listener-views.ts")).ListenerStatus;

/** Everything that can be asked of the desktop daemon. */
export class DesktopClient {
  private readonly http: HttpPeer;

  constructor(address: Address | Door) {
    this.http = new HttpPeer(address);
  }

  /** The worker of a cluster, as the daemon forwards it. @param turn when requests to it are sent; null: at once */
  cluster(name: string, turn: Turn | null = null): ClusterClient {
    return new ClusterClient(name, this.http.under(`/clusters/${encodeURIComponent(name)}`, undefined, turn));
  }

  status(signal?: AbortSignal): Promise<DesktopStatus> {
    return this.http.json("/status", async () => (await desktop()).DesktopStatus, { signal });
  }

  stop(signal?: AbortSignal): Promise<{ stopping: true }> {
    return this.http.json("/stop", async () => (await desktop()).Stopping, { method: "POST", repeatable: true, signal });
  }

  listener(signal?: AbortSignal): Promise<ListenerStatus> {
    return this.http.json("/listener", listener, { signal });
  }

  /** @throws RelayError configuration_error where the address, the token or the certificate cannot be used */
  startListener(request: ListenerRequestInput): Promise<ListenerStatus> {
    return this.http.json("/listener/start", listener, { method: "POST", body: request, repeatable: true });
  }

  stopListener(): Promise<ListenerStatus> {
    return this.http.json("/listener/stop", listener, { method: "POST", repeatable: true });
  }

  /** @throws RelayError configuration_error where the file cannot be used */
  rotateListenerToken(): Promise<ListenerStatus> {
    return this.http.json("/listener/rotate-token", listener, { method: "POST", repeatable: true });
  }

  async clusters(signal?: AbortSignal): Promise<ClusterEntry[]> {
    return (await this.http.json("/clusters", async () => (await desktop()).ClusterList, { signal })).clusters;
  }

  /** @throws RelayError cluster_not_found */
  clusterEntry(name: string): Promise<ClusterEntry> {
    return this.http.json(`/clusters/${encodeURIComponent(name)}`, entry);
  }

  putCluster(wanted: ClusterEntryInput, conditions: Readonly<Record<string, string>> = {}): Promise<ClusterEntry> {
    return this.http.json("/clusters", entry, { method: "POST", body: wanted, headers: conditions, repeatable: true });
  }

  /**
   * Make an entry out of the one that there is, null for none, so that no change of somebody else is lost in between.
   *
   * @param change may be called several times
   */
  async changeCluster(
    name: string,
    change: (known: ClusterEntry | null) => ClusterEntryInput,
  ): Promise<{ readonly before: ClusterEntry | null; readonly after: ClusterEntry }> {
    for (let left = CHANGE_TRIES; ; left--) {
      const { entry: before, conditions } = await this.#known(name);
      try {
        return { before, after: await this.putCluster(change(before), conditions) };
      } catch (error) {
        if (!isRelayError(error, "precondition_failed") || left <= 1) throw error;
      }
    }
  }

  async #known(name: string): Promise<{ entry: ClusterEntry | null; conditions: Record<string, string> }> {
    try {
      const { answer, headers } = await this.http.tagged(`/clusters/${encodeURIComponent(name)}`, entry);
      return { entry: answer, conditions: { "if-match": headers.get("etag") ?? "*" } };
    } catch (error) {
      if (!isRelayError(error, "cluster_not_found")) throw error;
      return { entry: null, conditions: { "if-none-match": "*" } };
    }
  }

  removeCluster(name: string): Promise<ClusterEntry> {
    return this.http.json(`/clusters/${encodeURIComponent(name)}`, entry, { method: "DELETE" });
  }

  /** @param patienceMs how long a worker of this machine has for a sign of life, in milliseconds; 2,000 where it is left out */
  async links(signal?: AbortSignal, patienceMs?: number): Promise<LinkStatus[]> {
    const request = { query: { patience_ms: patienceMs }, signal };
    return (await this.http.json("/links", async () => (await links()).LinkList, request)).links;
  }

  /**
   * Bring a cluster's link up. Yields what happens, `prompt` among it, which is answered with answerPrompt; leaving the loop, or aborting, gives it up.
   *
   * @throws RelayError why it did not come up; link_down when the daemon ends meanwhile
   */
  async *connect(name: string, request: AttendedRequest, signal?: AbortSignal): AsyncGenerator<AttendedEvent, LinkStatus> {
    const result = yield* this.#attended(`/clusters/${encodeURIComponent(name)}/connect`, request.requested_by, request, signal);
    return (await this.http.checker(link))(result);
  }

  /**
   * Do something on the host of a cluster's worker. Yields as connect does.
   *
   * @returns the task's own document
   * @throws RelayError why it was not done; link_down when the daemon ends meanwhile
   */
  async *host<N extends HostTaskName, T>(
    name: string,
    task: N,
    options: HostTaskOptions<N>,
    request: AttendedRequest,
    signal?: AbortSignal,
  ): AsyncGenerator<AttendedEvent, T> {
    const route = `/clusters/${encodeURIComponent(name)}/host/${task}`;
    return (yield* this.#attended(route, request.requested_by, { request, options }, signal)) as T;
  }

  /**
   * Have this desktop's key let in by the worker that made a code.
   *
   * @returns the entry by which it is met
   * @throws RelayError pairing_code_invalid, pairing_refused, host_key_changed; what meeting at a relay-host fails with
   */
  pair(name: string, request: PairClusterRequest, signal?: AbortSignal): Promise<ClusterEntry> {
    return this.http.json(`/clusters/${encodeURIComponent(name)}/pair`, entry, { method: "POST", body: request, signal });
  }

  /** @param command that the person gave */
  async *#attended(path: string, command: string, body: unknown, signal: AbortSignal | undefined): AsyncGenerator<AttendedEvent, unknown> {
    const check = await this.http.checker(async () => (await links()).AttendedEvent);
    const known = (await links()).ATTENDED_EVENTS;
    for await (const { event, data } of this.http.messages(path, { method: "POST", body, signal })) {
      // A later daemon may say more.
      if (!known.has(event)) continue;
      const message = check({ event, data });
      if (message.event === "done") return message.data;
      if (message.event === "failed") throw failureOf(message.data) ?? new RelayError("internal_error", "the daemon does not say why");
      yield message;
    }
    signal?.throwIfAborted();
    throw new RelayError(
      "link_down",
      "the daemon ended before it was done",
      {},
      `${command}, with the options that it had: a daemon starts by itself, and what was done stays`,
    );
  }

  /** @param answer null: the person does not want to. @throws RelayError not_found when it is no longer open */
  async answerPrompt(name: string, id: string, answer: string | null): Promise<void> {
    await this.http.json(
      `/clusters/${encodeURIComponent(name)}/prompts/${encodeURIComponent(id)}`,
      async () => (await links()).PromptTaken,
      { method: "POST", body: { answer }, changes: false },
    );
  }

  /** @throws RelayError cluster_not_found */
  disconnect(name: string): Promise<LinkStatus> {
    return this.http.json(`/clusters/${encodeURIComponent(name)}/disconnect`, link, { method: "POST", repeatable: true });
  }
}
