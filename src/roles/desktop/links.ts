import type { HostTask } from "../../api/desktop/host-views.ts";
import type { AttendedRequest, LinkStatus } from "../../api/desktop/link-views.ts";
import type { PairClusterRequest } from "../../api/desktop/pairing-views.ts";
import { problemOf } from "../../api/problem.ts";
import { type ClusterEntry, isOutbound, type OutboundEntry, sshView } from "../../config/cluster-entry.ts";
import { type Environment, variable } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { relayAuthorities } from "../../config/relay-ca.ts";
import { relayToken } from "../../config/relay-token.ts";
import { RelayError } from "../../domain/errors.ts";
import type { LinkInfo } from "../../domain/link.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { SharedTurns } from "../../lib/waiting/shared-turns.ts";
import { Ledger } from "../../transport/ledger.ts";
import type { LinkSnapshot } from "../../transport/link.ts";
import { clusterBusy } from "../../transport/link-failures.ts";
import { caFiles } from "../../transport/outbound/certificates.ts";
import type { Level } from "../log-line.ts";
import type { Follow } from "./attended-stream.ts";
import { forwardOverLink, forwardToSocket, type Patience } from "./forward.ts";
import { frpWanted } from "./frp-way.ts";
import { LocalWorkers } from "./local-workers.ts";
import type { ClusterRegistry } from "./registry.ts";
import { RelayCluster } from "./relay-cluster.ts";
import { SshCluster } from "./ssh-cluster.ts";
import { withPins } from "./worker-pins.ts";

/** How long a worker of this machine has for a sign of life, unless somebody cannot wait for it, in milliseconds. */
const WITHIN_MS = 2_000;

/** Requests that this process sends at a time unless its environment says otherwise, and those that are kept for what it asks itself (docs/measured.md). */
const SENDS = 256;
const OWN_SENDS = 16;
/** Beyond its share of these so many requests to one cluster wait for their turn. */
const WAITING = 1_000;

export interface LinksOptions {
  readonly registry: ClusterRegistry;
  readonly paths: Paths;
  readonly env: Environment;
  readonly version: string;
  readonly clock: Clock;
  readonly patience: Patience;
  /** File of certification authorities that are trusted besides the system's; null for none. */
  readonly caFile: string | null;
  /** How this program is run. */
  readonly self: readonly string[];
  readonly log: (level: Level, message: string) => void;
}

/** The ways to all clusters, each apart from the others: one that is slow, dead or hung is nobody else's concern. */
export class Links {
  /** The hosts of clusters, as ssh reaches them, and in mode ssh their links. */
  readonly #ssh = new Map<string, SshCluster>();
  readonly #relay = new Map<string, RelayCluster>();
  #ledger: Ledger | null = null;
  readonly #local: LocalWorkers;
  readonly #turns: SharedTurns;

  constructor(private readonly options: LinksOptions) {
    this.#local = new LocalWorkers(options.clock);
    const sends = Number(variable(options.env, "BUN_CONFIG_MAX_HTTP_REQUESTS")) || SENDS;
    this.#turns = new SharedTurns(sends - OWN_SENDS, { waitingMax: WAITING });
  }

  /** Bring up what comes up by itself. */
  start(): void {
    for (const entry of this.options.registry.all()) if (isOutbound(entry)) this.#met(entry.name).start();
  }

  /** What the two kinds of clusters have in common. */
  #shared(name: string) {
    const { env, version, clock, log, paths, registry } = this.options;
    return {
      cluster: name,
      env,
      version,
      clock,
      ledger: () => {
        this.#ledger ??= new Ledger(paths.ledgerFile, clock);
        return this.#ledger;
      },
      configDir: paths.configDir,
      pinWorker: (info: LinkInfo) => pinWorker(registry, name, info),
      report: (error: unknown) => log("error", error instanceof Error ? (error.stack ?? error.message) : String(error)),
      onChange: ({ state, reason }: LinkSnapshot) =>
        log("info", `link to ${name}: ${state}${reason === null ? "" : ` (${reason.message})`}`),
    };
  }

  #cluster(name: string): SshCluster {
    const { paths, registry } = this.options;
    let cluster = this.#ssh.get(name);
    if (cluster === undefined) {
      cluster = new SshCluster({
        ...this.#shared(name),
        entry: () => {
          const entry = registry.entry(name);
          return sshView(entry) ?? entry;
        },
        askpass: [...this.options.self, "__askpass"],
        frp: () => frpWanted(registry.entry(name), paths, this.options.env),
        relay: () => {
          const entry = registry.entry(name);
          if (entry.mode !== "relay") return null;
          const ca = entry.relay_ca_file === undefined ? {} : { ca: relayAuthorities(entry.relay_ca_file) };
          return { relay_host: entry.relay_host, token: relayToken(this.options.env, entry.relay_token_file), ...ca };
        },
        privateDirectory: paths.runDir,
        keepPrograms: (programs) => registry.update(name, (known) => ({ ...known, ...programs })),
        // What was set up from here may be a worker anew.
        pinWorkerKey: async (line) => {
          await registry.update(name, (known) =>
            known.mode === "local" ? known : { ...known, worker_key: line, next_worker_key: null, worker_cluster: null, worker_id: null },
          );
          if (isOutbound(registry.entry(name))) await this.#met(name).entryChanged();
        },
      });
      this.#ssh.set(name, cluster);
    }
    return cluster;
  }

  #met(name: string): RelayCluster {
    const { registry, env, caFile, paths, log } = this.options;
    let cluster = this.#relay.get(name);
    if (cluster === undefined) {
      cluster = new RelayCluster({
        ...this.#shared(name),
        entry: () => asOutbound(registry.entry(name)),
        caFiles: () => {
          const entry = registry.entry(name);
          return caFiles(caFile, env.variables, entry.mode === "relay" ? entry.relay_ca_file : undefined);
        },
        paths,
        notice: (text) => log("warn", `link to ${name}: ${text}`),
      });
      this.#relay.set(name, cluster);
    }
    return cluster;
  }

  /**
   * Have this desktop's key let in by the worker that made a code, and keep the entry by which it is met.
   *
   * @throws RelayError as pairCluster; configuration_error, state_conflict
   */
  async pair(name: string, request: PairClusterRequest, signal: AbortSignal): Promise<ClusterEntry> {
    const { registry, env, version, paths, caFile } = this.options;
    const { pairCluster } = await import("./pairing.ts");
    const { ledger } = this.#shared(name);
    const before = registry.all().find((one) => one.name === name) ?? null;
    const surroundings = {
      env,
      version,
      configDir: paths.configDir,
      ledger,
      caFiles: (own: string | null) => caFiles(caFile, env.variables, own),
    };
    const entry = await pairCluster(name, before, request, surroundings, signal);
    const kept = await registry.put(entry, () => undefined);
    // Whoever was there before may have been somebody else.
    await this.forget(name);
    await this.entryChanged(kept);
    return kept;
  }

  /** An entry was made, or is another one than before. */
  async entryChanged(entry: ClusterEntry): Promise<void> {
    if (!isOutbound(entry)) await this.#forgetRelay(entry.name);
    if (entry.mode !== "ssh") await this.#ssh.get(entry.name)?.link.disconnect();
    if (entry.mode === "local") await this.forget(entry.name);
    else if (isOutbound(entry)) await this.#met(entry.name).entryChanged();
  }

  /**
   * Send a request on to a cluster. One whose requests are not answered has never all that can be sent.
   *
   * @throws RelayError cluster_not_found, worker_not_running, link_down, cluster_busy, authorization_required, version_mismatch
   */
  async forward(cluster: string, target: string, request: Request): Promise<Response> {
    const { registry, paths, patience } = this.options;
    const entry = registry.entry(cluster);
    const full = () => clusterBusy(cluster, `${WAITING} requests to ${cluster} wait for their turn`);
    const over = await this.#turns.enter(cluster, request.signal, full);
    // Of an answer whose client is gone nobody asks for the end.
    request.signal.addEventListener("abort", over, { once: true });
    const forwarding = { cluster, target, request, over };
    try {
      if (entry.mode === "local") return await forwardToSocket(forwarding, paths.workerSocket(cluster), this.#local, patience);
      return await forwardOverLink(forwarding, (isOutbound(entry) ? this.#met(cluster) : this.#cluster(cluster)).link);
    } catch (error) {
      over();
      throw error;
    }
  }

  /** Connections that this process dialed, by cluster. */
  get dials(): ReadonlyMap<string, number> {
    return this.#ledger?.dials ?? new Map();
  }

  /** How each is now. Those of this machine are asked for a sign of life, all at once. @param patienceMs how long they have for it; who takes longer is as it was known */
  states(patienceMs = WITHIN_MS): Promise<LinkStatus[]> {
    return Promise.all(this.options.registry.all().map((entry) => this.#state(entry, patienceMs)));
  }

  #state(entry: ClusterEntry, patienceMs = WITHIN_MS): Promise<LinkStatus> | LinkStatus {
    if (entry.mode === "local") return this.#local.state(entry.name, this.options.paths.workerSocket(entry.name), patienceMs);
    return (isOutbound(entry) ? this.#met(entry.name) : this.#cluster(entry.name)).status();
  }

  /** @throws RelayError cluster_not_found, state_conflict */
  async connect(name: string, request: AttendedRequest, client: AbortSignal): Promise<Follow> {
    const entry = this.options.registry.entry(name);
    if (entry.mode === "local") return () => this.#alwaysThere(entry);
    return entry.mode === "ssh" ? this.#cluster(name).connect(entry, request, client) : this.#met(name).connect(request);
  }

  /** @throws RelayError cluster_not_found, configuration_error, state_conflict */
  async host(name: string, task: HostTask, request: AttendedRequest, client: AbortSignal): Promise<Follow> {
    const entry = this.options.registry.entry(name);
    const host = sshView(entry);
    if (host !== null) return this.#cluster(name).host(host, task, request, client);
    if (entry.mode !== "local") {
      const hint = `clio-relay cluster add ${name} --ssh-host HOST`;
      throw new RelayError("configuration_error", `of ${name} no login node is known, and this needs one`, { cluster: name }, hint);
    }
    throw new RelayError("configuration_error", `${name} is on this machine: there is no other host to work on`, { cluster: name });
  }

  /** Nothing has to be brought up to a socket on this machine, at which somebody has to be. */
  async *#alwaysThere(entry: ClusterEntry): ReturnType<Follow> {
    const status = await this.#state(entry);
    const absent = new RelayError("worker_not_running", `no worker is running for ${entry.name}`, { cluster: entry.name });
    yield status.state === "down" ? { event: "failed", data: { ...problemOf(absent) } } : { event: "done", data: status };
  }

  /** @throws RelayError not_found when there is no such question, or no longer */
  answer(name: string, id: string, answer: string | null): void {
    if (this.#ssh.get(name)?.answer(id, answer) !== true) throw new RelayError("not_found", "there is no such question, or no longer");
  }

  /** @throws RelayError cluster_not_found */
  async disconnect(name: string): Promise<LinkStatus> {
    const entry = this.options.registry.entry(name);
    if (isOutbound(entry)) await this.#met(name).disconnect();
    if (entry.mode !== "local") await this.#ssh.get(name)?.disconnect();
    return this.#state(entry);
  }

  /** A cluster that is no longer registered has no link. */
  async forget(name: string): Promise<void> {
    await this.#forgetRelay(name);
    await this.#ssh.get(name)?.disconnect();
    this.#ssh.delete(name);
  }

  async #forgetRelay(name: string): Promise<void> {
    await this.#relay.get(name)?.close();
    this.#relay.delete(name);
  }

  async close(): Promise<void> {
    this.#local.close();
    const ssh = [...this.#ssh.values()].map((cluster) => cluster.disconnect());
    await Promise.all([...ssh, ...[...this.#relay.values()].map((cluster) => cluster.close())]);
  }
}

/** The mode may be another one since its link was made. */
function asOutbound(entry: ClusterEntry): OutboundEntry {
  if (isOutbound(entry)) return entry;
  throw new RelayError("link_down", "the cluster's entry leads elsewhere now", { cluster: entry.name });
}

/** Keep what a worker has said of itself; nothing is written where nothing is new. */
async function pinWorker(registry: ClusterRegistry, name: string, info: LinkInfo): Promise<void> {
  const entry = registry.all().find((one) => one.name === name);
  if (entry !== undefined && withPins(entry, info) !== entry) await registry.update(name, (known) => withPins(known, info));
}
