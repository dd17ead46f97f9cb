import type { DesktopClient } from "../api/client/desktop-client.ts";
import { recordHolder } from "../api/client/record-holder.ts";
import type { ClusterClient } from "../api/client.ts";
import type { LinkStatus } from "../api/desktop/link-views.ts";
import { type ClusterEntry, routeRevision } from "../config/cluster-entry.ts";
import { isRelayError, RelayError } from "../domain/errors.ts";
import type { Metadata } from "../domain/primitives.ts";
import { SharedTurns } from "../lib/waiting/shared-turns.ts";
import { within } from "../lib/waiting/within.ts";
import { clusterBusy } from "../transport/link-failures.ts";
import { asked } from "./asked.ts";
import { Held, heldTurns } from "./held.ts";

/** How long the daemon has to say which clusters there are, where it said so before, in milliseconds. */
const PATIENCE_MS = 1_000;
/** How long a worker of this machine has for a sign of life before it is told that it is not answering, in milliseconds. */
const SIGN_MS = 500;
/** How long the registry is taken to be as it was read, in milliseconds. */
const FRESH_MS = 1_000;
/** Requests to clusters that are answered at once, at a time; with those that wait, and what the daemon itself is asked, no more than a process sends (docs/measured.md). */
const ASKED = 56;
/** Of one cluster so many more may wait for their turn. */
const ASKS_WAITING = 1_000;
/** Places of jobs that are remembered. */
const REMEMBERED = 10_000;

const JOB_ID = /^job_[0-9a-f]{32}$/;

/** A cluster as it is meant now. */
export interface Place {
  readonly client: ClusterClient;
  readonly entry: ClusterEntry;
  /** For requests to it that wait. */
  readonly held: Held;
  /** SHA-256 over what decides where requests go. */
  readonly route_revision: string;
}

/** Where a caller says that a record is. */
export interface Where {
  readonly cluster?: string | undefined;
  readonly route_revision?: string | undefined;
}

/** The clusters of this installation, as the daemon knows them. */
export class Clusters {
  #read: { readonly at: number; readonly entries: Promise<readonly ClusterEntry[]> } | null = null;
  /** As they were read last. */
  #last: readonly ClusterEntry[] | null = null;
  readonly #held = heldTurns();
  readonly #asked = new SharedTurns(ASKED, { waitingMax: ASKS_WAITING });
  /** Where jobs were found, the latest last. */
  readonly #found = new Map<string, string>();

  constructor(
    private readonly desktop: DesktopClient,
    private readonly now: () => number,
    /** See ServiceOptions. */
    readonly origin: (cluster: string) => Metadata,
  ) {}

  /** The same, as the daemon has them by now. */
  entriesAnew(signal: AbortSignal): Promise<readonly ClusterEntry[]> {
    this.#read = null;
    return this.entries(signal);
  }

  /** The registered clusters. No cluster is asked for it. */
  entries(signal: AbortSignal): Promise<readonly ClusterEntry[]> {
    const at = this.now();
    if (this.#read === null || at - this.#read.at > FRESH_MS) this.#read = this.#readEntries(at, signal);
    return this.#read.entries;
  }

  /** The same for a list that has to come: as they were read last where the daemon fails, or takes its time; none, where it never said which there are. */
  async known(signal: AbortSignal): Promise<readonly ClusterEntry[]> {
    const now = this.entries(signal).catch(() => this.#last ?? []);
    if (this.#last === null || (await within(now, PATIENCE_MS))) return now;
    return this.#last;
  }

  #readEntries(at: number, signal: AbortSignal) {
    // Whoever comes next does not depend on whether this one goes away.
    const entries = asked("the desktop daemon", new AbortController().signal, (bounded) => this.desktop.clusters(bounded));
    const read = { at, entries };
    entries.then(
      (found) => {
        this.#last = found;
      },
      () => {
        if (this.#read === read) this.#read = null;
      },
    );
    signal.throwIfAborted();
    return read;
  }

  /** @throws RelayError cluster_not_found; job_route_refused where it is reached by another way than the one that is meant */
  async named(name: string, signal: AbortSignal, route?: string): Promise<Place> {
    let entries = await this.entries(signal);
    if (!entries.some((one) => one.name === name)) {
      entries = await this.entriesAnew(signal);
    }
    const entry = entries.find((one) => one.name === name);
    if (entry === undefined) {
      const known = entries.slice(0, 50).map((one) => one.name);
      throw new RelayError("cluster_not_found", `there is no cluster ${name}; there are ${known.join(", ") || "none"}`, {
        clusters: known,
      });
    }
    return byRoute(this.#place(entry), route);
  }

  #place = (entry: ClusterEntry): Place => ({
    client: this.desktop.cluster(entry.name, (signal) => this.#turn(entry.name, signal)),
    entry,
    held: new Held(this.#held, entry.name),
    route_revision: routeRevision(entry),
  });

  /** @throws RelayError cluster_busy; the signal's reason */
  async #turn(cluster: string, signal: AbortSignal | undefined): Promise<() => void> {
    try {
      return await this.#asked.enter(cluster, signal, () =>
        clusterBusy(cluster, `${ASKS_WAITING} requests to ${cluster} wait here for their turn`),
      );
    } catch (error) {
      if (!isRelayError(error, "observation_timeout")) throw error;
      throw clusterBusy(cluster, `requests to ${cluster} have not been answered for as long as this one waited for its turn`);
    }
  }

  /** The cluster that has a job. @throws RelayError job_not_found, link_down, as named */
  async ofJob(id: string, where: Where, signal: AbortSignal): Promise<Place> {
    if (where.cluster !== undefined) return this.named(where.cluster, signal, where.route_revision);
    if (!JOB_ID.test(id)) throw new RelayError("job_not_found", `there is no job ${id.slice(0, 128)}`, { job_id: id.slice(0, 128) });
    const known = this.#found.get(id);
    if (known !== undefined) {
      const place = await this.named(known, signal).catch(() => null);
      if (place !== null) return byRoute(place, where.route_revision);
    }
    const place = await this.#holder(`job ${id}`, "job_not_found", signal, (client, bounded) => client.job(id, bounded));
    // A sole cluster was not asked whether it has it.
    if ((await this.entries(signal)).length > 1) this.remember(id, place.entry.name);
    return byRoute(place, where.route_revision);
  }

  async ofTask(id: string, { cluster, route_revision }: Where, signal: AbortSignal): Promise<Place> {
    if (cluster !== undefined) return this.named(cluster, signal, route_revision);
    const asks = (client: ClusterClient, bounded: AbortSignal) => client.taskEvents(id, { limit: 1, signal: bounded });
    return byRoute(await this.#holder(`task ${id}`, "task_not_found", signal, asks), route_revision);
  }

  async ofArtifact(id: string, { cluster, route_revision }: Where, signal: AbortSignal): Promise<Place> {
    if (cluster !== undefined) return this.named(cluster, signal, route_revision);
    const asks = (client: ClusterClient, bounded: AbortSignal) => client.artifact(id, bounded);
    return byRoute(await this.#holder(`artifact ${id}`, "artifact_not_found", signal, asks), route_revision);
  }

  async #holder(
    what: string,
    missing: Parameters<typeof recordHolder>[2],
    signal: AbortSignal,
    ask: (client: ClusterClient, signal: AbortSignal) => Promise<unknown>,
  ): Promise<Place> {
    const places = (await this.entries(signal)).map(this.#place);
    if (places.length === 0) throw new RelayError(missing, `there is no ${what}: there is no cluster yet`);
    const holder = await recordHolder(
      places.map(({ client }) => client),
      what,
      missing,
      (client, bounded) => ask(client, AbortSignal.any([signal, bounded])),
    );
    return places.find(({ client }) => client === holder)!;
  }

  /** A job is on that cluster, which need not be looked for. */
  remember(jobId: string, cluster: string): void {
    this.#found.delete(jobId);
    this.#found.set(jobId, cluster);
    if (this.#found.size > REMEMBERED) this.#found.delete(this.#found.keys().next().value!);
  }

  /** How each is reached; who does not answer at once is as it was known. */
  links(signal: AbortSignal): Promise<LinkStatus[]> {
    return asked("the desktop daemon", signal, (bounded) => this.desktop.links(bounded, SIGN_MS));
  }
}

/** A place that is reached as whoever asks has it. @throws RelayError job_route_refused where it is reached by another way */
function byRoute(place: Place, route: string | undefined): Place {
  if (route === undefined || route === place.route_revision) return place;
  const { name } = place.entry;
  const data = { cluster: name, route_revision: place.route_revision };
  const hint = "without route_revision it is looked for there";
  throw new RelayError("job_route_refused", `the route of ${name} has changed since`, data, hint);
}
