import type { HostTask } from "../../api/host-views.ts";
import type { AttendedRequest, LinkStatus } from "../../api/link-views.ts";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { Ledger } from "../../transport/ledger.ts";
import type { Level } from "../log-line.ts";
import { nobodyListens, probe } from "../probe.ts";
import type { Follow } from "./attended-stream.ts";
import { forwardOverLink, forwardToSocket, type Patience } from "./forward.ts";
import type { ClusterRegistry } from "./registry.ts";
import { SshCluster } from "./ssh-cluster.ts";

const WITHIN_MS = 2_000;

export interface LinksOptions {
  readonly registry: ClusterRegistry;
  readonly paths: Paths;
  readonly env: Environment;
  readonly version: string;
  readonly clock: Clock;
  readonly patience: Patience;
  /** How this program is run. */
  readonly self: readonly string[];
  readonly log: (level: Level, message: string) => void;
}

/** The ways to all clusters, each apart from the others: one that is slow, dead or hung is nobody else's concern. */
export class Links {
  readonly #ssh = new Map<string, SshCluster>();
  #ledger: Ledger | null = null;

  constructor(private readonly options: LinksOptions) {}

  #cluster(name: string): SshCluster {
    const { env, version, clock, log, paths, registry } = this.options;
    let cluster = this.#ssh.get(name);
    if (cluster === undefined) {
      cluster = new SshCluster({
        cluster: name,
        env,
        version,
        clock,
        entry: () => registry.entry(name),
        ledger: () => {
          this.#ledger ??= new Ledger(this.options.paths.ledgerFile, clock);
          return this.#ledger;
        },
        askpass: [...this.options.self, "__askpass"],
        privateDirectory: paths.runDir,
        configDir: paths.configDir,
        // What was set up from here may be a worker anew.
        pinWorkerKey: (line) =>
          registry.update(name, (known) => (known.mode === "ssh" ? { ...known, worker_key: line, worker_id: null } : known)),
        pinWorkerId: (id) => registry.update(name, (known) => (known.mode === "ssh" ? { ...known, worker_id: id } : known)),
        report: (error) => log("error", error instanceof Error ? (error.stack ?? error.message) : String(error)),
        onChange: ({ state, reason }) => log("info", `link to ${name}: ${state}${reason === null ? "" : ` (${reason.message})`}`),
      });
      this.#ssh.set(name, cluster);
    }
    return cluster;
  }

  /** @throws RelayError cluster_not_found, worker_not_running, link_down, authorization_required, version_mismatch */
  forward(name: string, target: string, request: Request): Promise<Response> {
    const { registry, paths, patience } = this.options;
    const entry = registry.entry(name);
    if (entry.mode === "local") return forwardToSocket(name, paths.workerSocket(name), target, request, patience);
    return forwardOverLink(this.#cluster(name).link, target, request);
  }

  /** How each is now. Those of this machine are asked for a sign of life, all at once; the slowest costs two seconds. */
  states(): Promise<LinkStatus[]> {
    return Promise.all(this.options.registry.all().map((entry) => this.#state(entry)));
  }

  #state(entry: ClusterEntry): Promise<LinkStatus> | LinkStatus {
    if (entry.mode === "local") return localState(entry.name, this.options.paths.workerSocket(entry.name));
    return this.#cluster(entry.name).status();
  }

  /** @throws RelayError cluster_not_found, state_conflict */
  connect(name: string, request: AttendedRequest): Follow {
    const entry = this.options.registry.entry(name);
    return entry.mode === "ssh" ? this.#cluster(name).connect(entry, request) : () => this.#alwaysThere(entry);
  }

  /** @throws RelayError cluster_not_found, configuration_error, state_conflict */
  host(name: string, task: HostTask, request: AttendedRequest): Follow {
    const entry = this.options.registry.entry(name);
    if (entry.mode === "ssh") return this.#cluster(name).host(entry, task, request);
    throw new RelayError("configuration_error", `${name} is on this machine: there is no other host to work on`, { cluster: name });
  }

  /** Nothing has to be brought up to a socket on this machine. */
  async *#alwaysThere(entry: ClusterEntry): ReturnType<Follow> {
    yield { event: "done", data: await this.#state(entry) };
  }

  /** @throws RelayError not_found when there is no such question, or no longer */
  answer(name: string, id: string, answer: string | null): void {
    if (this.#ssh.get(name)?.answer(id, answer) !== true) throw new RelayError("not_found", "there is no such question, or no longer");
  }

  /** @throws RelayError cluster_not_found */
  async disconnect(name: string): Promise<LinkStatus> {
    const entry = this.options.registry.entry(name);
    if (entry.mode === "ssh") await this.#cluster(name).disconnect();
    return this.#state(entry);
  }

  /** A cluster that is no longer registered has no link. */
  async forget(name: string): Promise<void> {
    await this.#ssh.get(name)?.disconnect();
    this.#ssh.delete(name);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#ssh.values()].map((cluster) => cluster.disconnect()));
  }
}

async function localState(cluster: string, socket: string): Promise<LinkStatus> {
  const base = {
    cluster,
    mode: "local",
    since: null,
    round_trip_ms: null,
    worker_version: null,
    detail: null,
    bytes_in: null,
    bytes_out: null,
    ssh_connections_since_bring_up: null,
    bring_up_seq: null,
    ledger: [],
  } as const;
  try {
    const { roundTripMs, version } = await probe(socket, WITHIN_MS);
    return { ...base, ledger: [], state: "up", round_trip_ms: Math.round(roundTripMs * 1_000) / 1_000, worker_version: version };
  } catch (error) {
    if (nobodyListens(error)) return { ...base, ledger: [], state: "down", detail: "no worker is running" };
    return { ...base, ledger: [], state: "degraded", detail: `the worker did not answer within ${WITHIN_MS} ms` };
  }
}
