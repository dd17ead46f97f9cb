import type { HostTask } from "../../api/desktop/host-views.ts";
import { type AttendedRequest, LEDGER_SHOWN, type LinkStatus } from "../../api/desktop/link-views.ts";
import { type ClusterEntry, routeRevision, type SshEntry } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { LinkInfo } from "../../domain/link.ts";
import type { WorkerPrograms } from "../../domain/worker-programs.ts";
import { canonicalJson } from "../../lib/digest.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { systemTimers } from "../../lib/waiting/timers.ts";
import { findWorker } from "../../transport/bring-up/find-worker.ts";
import { isSsh, type Ledger } from "../../transport/ledger.ts";
import { Link, type LinkSnapshot } from "../../transport/link.ts";
import type { BringUp, LinkTransport, Regain } from "../../transport/link-transport.ts";
import type { ExpectedWorker } from "../../transport/link-version.ts";
import { remoteOver } from "../../transport/script/remote.ts";
import { SessionWatch } from "../../transport/session-watch.ts";
import { settled } from "../../transport/settled.ts";
import { connectSsh } from "../../transport/ssh/connect.ts";
import { type HeldConnection, heldByUs } from "../../transport/ssh/held.ts";
import { withRemedy } from "../../transport/ssh/remedy.ts";
import type { SshRequest } from "../../transport/ssh/request.ts";
import type { Attended } from "./attended-run.ts";
import type { Follow } from "./attended-stream.ts";
import { AttendedTurns } from "./attended-turns.ts";
import { desktopKey } from "./desktop-key.ts";
import type { FrpWanted } from "./host-tasks.ts";
import { entriesOf } from "./ledger-entries.ts";
import {
  type Arrival,
  activeJobs,
  arrive,
  type BridgeKeys,
  isSilent,
  notInstalled,
  type Reached,
  reachWorker,
  servingSocket,
} from "./login-node.ts";
import { sshRequest } from "./ssh-request.ts";
import { expectedWorker, pinnedKeys } from "./worker-pins.ts";

/** How long a connection without a link is kept for the next command. */
const KEPT_MS = 15 * 60_000;

/** Tasks that may leave another worker behind than there was before. */
const STARTING: ReadonlySet<HostTask["task"]> = new Set(["bootstrap", "rollback", "service-install", "service-restart", "worker-start"]);

/** Tasks that change nothing. */
const LOOKING: ReadonlySet<HostTask["task"]> = new Set(["probe", "service-status"]);

const placeOf = (entry: SshEntry) => ({ cluster: entry.name, coreDir: entry.core_dir, site: false });

export interface SshClusterOptions {
  readonly cluster: string;
  readonly env: Environment;
  readonly version: string;
  readonly clock: Clock;
  /** The cluster's entry as it is now. @throws RelayError cluster_not_found, configuration_error */
  readonly entry: () => ClusterEntry;
  /** @throws RelayError local_file_unusable */
  readonly ledger: () => Ledger;
  readonly onChange: (snapshot: LinkSnapshot) => void;
  /** What starts this program to ask for ssh. */
  readonly askpass: readonly string[];
  /** A directory of the user's alone. */
  readonly privateDirectory: string;
  /** Where this installation's own key is. */
  readonly configDir: string;
  readonly pinWorkerKey: (line: string) => Promise<void>;
  readonly keepPrograms: (programs: WorkerPrograms) => Promise<void>;
  /** Where the worker is to be met, with the token; null: nowhere else than over ssh. @throws RelayError configuration_error */
  readonly relay: () => { readonly relay_host: string; readonly token: string; readonly ca?: string } | null;
  /** What it is to offer at a frps; null: nothing. @throws RelayError configuration_error */
  readonly frp: () => FrpWanted | null;
  readonly pinWorker: (info: LinkInfo) => Promise<void>;
  /** Gets failures that are not RelayErrors, for the daemon's log. */
  readonly report: (error: unknown) => void;
  readonly keptMs?: number;
}

/** A connection that is open, and what it was made by. */
interface Kept {
  readonly connection: HeldConnection;
  readonly watch: SessionWatch;
  readonly route: string;
  /** Aborted when the connection is over. */
  readonly lost: AbortSignal;
}

/** A cluster that is reached over one SSH connection: its link, the connection that carries it, and the one command at a time that works on them. */
export class SshCluster {
  readonly link: Link;
  #kept: Kept | null = null;
  /** Entry of the ledger of the last connection. */
  #seq: number | null = null;
  #expiry: ReturnType<typeof setTimeout> | undefined;
  #reached: Reached | null = null;
  /** Where the installation was removed from here, until there is one again. */
  #uninstalled: Arrival["found"] | null = null;
  readonly #turns: AttendedTurns;

  constructor(private readonly options: SshClusterOptions) {
    this.#turns = new AttendedTurns(options.cluster, options.report);
    this.link = new Link({
      cluster: options.cluster,
      version: options.version,
      clock: options.clock,
      afterDrop: "authorization_required",
      initial: this.#wasLost() ? "authorization_required" : "down",
      onWorker: (info) => void options.pinWorker(info).catch(options.report),
      onChange: options.onChange,
      whyAbsent: () => (this.#uninstalled === null ? null : notInstalled(options.cluster, this.#uninstalled)),
      regain: (lost) => this.#bridgeAgain(lost),
    });
  }

  /**
   * Bring the link up for somebody who is there, or join in when that is under way.
   *
   * @throws RelayError state_conflict while something else is done with the cluster's connection
   */
  connect(entry: SshEntry, request: AttendedRequest, client: AbortSignal): Promise<Follow> {
    return this.attended("connect", request, (attended) => this.#connect(entry, request, attended), client);
  }

  /**
   * Do something on the host of the worker, over the connection that is there, or a new one that is kept for what follows.
   *
   * @throws RelayError state_conflict while something else is done with the cluster's connection
   */
  host(entry: SshEntry, task: HostTask, request: AttendedRequest, client: AbortSignal): Promise<Follow> {
    const work = async (attended: Attended): Promise<unknown> => {
      const arrival = await this.arrival(entry, request, attended, task.task === "bootstrap" ? "bootstrap" : "connect");
      const { clock, configDir, pinWorkerKey, keepPrograms } = this.options;
      try {
        const { hostTask } = await import("./host-tasks.ts");
        const done = await hostTask(
          {
            entry,
            remote: remoteOver(arrival.connection.session),
            attended,
            configDir,
            clock,
            relay: this.options.relay,
            frp: this.options.frp,
            pinWorkerKey,
            keepPrograms,
            activeJobs: () => activeJobs(entry, arrival, this.#keys(entry), attended.attending.signal),
            isSilent: () => isSilent(entry, arrival, this.#keys(entry), attended.attending.signal),
          },
          task,
        );
        if (task.task === "uninstall") this.#uninstalled = arrival.found;
        else if (task.task === "bootstrap") this.#uninstalled = null;
        if (this.isUp && STARTING.has(task.task)) await this.#findAgain(entry, arrival, attended.attending.signal);
        if (!LOOKING.has(task.task)) await this.link.lookAgain(attended.attending.signal);
        return done;
      } catch (error) {
        throw this.#withRemedy(error, attended);
      } finally {
        this.#hold();
      }
    };
    return this.attended(`${task.task} ${canonicalJson(task.options)}`, request, work, client);
  }

  /** The worker that was started may have its socket elsewhere than the one that the link led to. */
  async #findAgain(entry: SshEntry, { connection }: Arrival, signal: AbortSignal): Promise<void> {
    const { worker, runsHere } = await findWorker(remoteOver(connection.session), placeOf(entry), signal);
    if (worker !== null && runsHere) this.#reached?.moved(worker.socket);
  }

  /** A failure on the host says of which cluster. A connection that ends under a task is made anew by the next command of a person. */
  #withRemedy(error: unknown, { attending }: Attended): unknown {
    if (!isRelayError(error)) return error;
    const { cluster } = this.options;
    const again = (how: string): string => error.hint ?? `${attending.requestedBy}, with the options that it had: it ${how}`;
    const failure = (message: string, hint = error.hint): RelayError =>
      new RelayError(error.code, message, { cluster, ...error.data }, hint, { cause: error });
    if (error.code === "script_failed") return failure(error.message, again("goes on from what is there"));
    if (error.code !== "link_down" || error.hint !== undefined) return failure(error.message);
    const lost = `the connection to the host of ${cluster} was lost: ${error.message}`;
    return failure(lost, again("makes a new connection, and goes on from what is there"));
  }

  /** Do something that may need a person, one at a time. @throws as AttendedTurns.take */
  attended(what: string, request: AttendedRequest, work: (attended: Attended) => Promise<unknown>, client: AbortSignal): Promise<Follow> {
    const whole = async (attended: Attended): Promise<unknown> => {
      try {
        return await work(attended);
      } catch (error) {
        throw await this.#lateOrLost(error, attended);
      }
    };
    return this.#turns.take(what, request, whole, client);
  }

  /** Where something was not answered in time, or was given up, the connection itself may be gone. */
  async #lateOrLost(error: unknown, attended: Attended): Promise<unknown> {
    if (isRelayError(error, "script_failed") && error.hint === undefined) return this.#withRemedy(error, attended);
    const { signal } = attended.attending;
    const kept = this.#kept;
    if (kept === null) return error;
    const asked = kept.watch.ask();
    if (signal.aborted || !isRelayError(error, "observation_timeout")) return error;
    await settled(asked, signal);
    return kept.lost.aborted ? this.#withRemedy(kept.lost.reason, attended) : error;
  }

  /** @returns false when there is no such question, or no longer */
  answer(id: string, answer: string | null): boolean {
    return this.#turns.answer(id, answer);
  }

  async #connect(entry: SshEntry, request: AttendedRequest, attended: Attended): Promise<LinkStatus> {
    const before = this.isUp;
    const bringUp: BringUp = async (stop) => {
      const signal = AbortSignal.any([stop, attended.attending.signal]);
      const own = { ...attended, attending: { ...attended.attending, signal } };
      const arrival = await this.arrival(entry, request, own, "connect");
      const transport = await reachWorker(entry, arrival, this.#keys(entry), signal);
      this.#reached = transport;
      own.progress(`${arrival.found.hostname} has worker ${arrival.found.worker!.version}`);
      return transport;
    };
    const { signal: wanted } = attended.attending;
    await this.link.connect(bringUp, expectedWorker(entry), wanted).catch(async (error: unknown) => {
      if (!before || !isRelayError(error, "worker_not_running")) throw error;
      // The link is left as it is; why nobody is at its other end is for the host to say.
      const socket = servingSocket(entry.name, await this.arrival(entry, request, attended, "connect"));
      this.#reached?.moved(socket);
      await this.link.connect(bringUp, expectedWorker(entry), wanted);
    });
    const { worker } = this.link.snapshot();
    this.#uninstalled = null;
    if (worker !== null) await this.options.pinWorker(worker);
    this.#hold();
    return this.status();
  }

  /** The session over a bridge may end without the connection that it was on: the worker may be on its way back, and nobody is needed for the next one. */
  #bridgeAgain({ session }: LinkTransport): Regain | null {
    const kept = this.#kept;
    if (kept === null || kept.connection.session === session) return null;
    this.#hold();
    return {
      bringUp: (signal) => this.#reach(kept, signal),
      expected: () => this.#expected(),
      until: kept.lost,
      report: this.options.report,
    };
  }

  #expected(): ExpectedWorker {
    const entry = this.options.entry();
    return entry.mode === "ssh" ? expectedWorker(entry) : { cluster: entry.name };
  }

  async #reach({ connection, route }: Kept, signal: AbortSignal): Promise<LinkTransport> {
    const entry = this.options.entry();
    if (entry.mode !== "ssh" || routeRevision(entry) !== route)
      throw new RelayError("link_down", "the cluster's entry leads elsewhere now");
    const found = await findWorker(remoteOver(connection.session), placeOf(entry), signal);
    this.#reached = await reachWorker(entry, { connection, found }, this.#keys(entry), signal);
    return this.#reached;
  }

  /** Open a connection with the client that the entry names. */
  async #open(entry: SshEntry, ssh: SshRequest): Promise<HeldConnection> {
    try {
      if (entry.ssh_client === "builtin") return heldByUs(await connectSsh(ssh));
      const { askpass, privateDirectory } = this.options;
      const { connectOpenSsh } = await import("../../transport/ssh/openssh/connect.ts");
      return await connectOpenSsh(ssh, { askpass, privateDirectory });
    } catch (error) {
      throw withRemedy(error, ssh, entry.ssh_client);
    }
  }

  /**
   * A session with the host of the worker, over the connection that is there, or a new one. It stays open: for the link when that is up, else for a
   * quarter of an hour after this.
   */
  async arrival(entry: SshEntry, request: AttendedRequest, attended: Attended, purpose: "connect" | "bootstrap"): Promise<Arrival> {
    const { ledger, env } = this.options;
    const ssh = sshRequest(entry, purpose, { request, attended, ledger: ledger(), env });
    const route = routeRevision(entry);
    const { signal } = attended.attending;
    // Nobody else has looked whether what carries no link is still there.
    if (this.#kept !== null && !this.isUp) await settled(this.#kept.watch.ask(), signal);
    let kept = this.#kept;
    if (kept !== null && kept.route !== route) {
      this.#close();
      kept = null;
    }
    if (kept === null) {
      attended.progress(`connecting to ${entry.ssh_host}`);
      const opened = await this.#open(entry, ssh);
      if (signal.aborted) opened.session.close();
      signal.throwIfAborted();
      kept = this.#keep(opened, route);
      attended.progress(`let in by ${entry.ssh_host}`);
    }
    this.#hold();
    const arrival = await arrive(entry, kept.connection, ssh, attended);
    if (arrival.connection !== kept.connection) this.#keep(arrival.connection, route);
    return arrival;
  }

  #keys(entry: SshEntry): BridgeKeys {
    const pinned = pinnedKeys(entry);
    return pinned === null ? null : { workerKeys: pinned, privateKey: desktopKey(this.options.configDir) };
  }

  #keep(connection: HeldConnection, route: string): Kept {
    const lost = new AbortController();
    const watch = new SessionWatch(connection.session, this.options.clock, systemTimers);
    const kept = { connection, watch, route, lost: lost.signal };
    this.#kept = kept;
    this.#seq = connection.ledgerSeq;
    void connection.session.closed.then((reason) => {
      if (this.#kept === kept) this.#kept = null;
      lost.abort(reason ?? new RelayError("link_down", "the connection was closed"));
    });
    return kept;
  }

  /** The time of a connection that carries no link begins anew. */
  #hold(): void {
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => {
      if (!this.isUp) this.#close();
    }, this.options.keptMs ?? KEPT_MS);
    this.#expiry.unref();
  }

  #close(): void {
    this.#kept?.connection.session.close();
    this.#kept = null;
  }

  get isUp(): boolean {
    const { state } = this.link.snapshot();
    return state === "up" || state === "degraded";
  }

  /** End the link and the connection, and whatever is under way on them. */
  async disconnect(): Promise<void> {
    clearTimeout(this.#expiry);
    const { cluster } = this.options;
    this.#turns.giveUp(new RelayError("link_down", `${cluster} was disconnected meanwhile`, { cluster }));
    await this.link.disconnect();
    this.#close();
  }

  /** As it is now; nobody is asked. */
  status(): LinkStatus {
    const { cluster } = this.options;
    const { state, since, round_trip_ms, worker, reason, absent, bytes_in, bytes_out } = this.link.snapshot();
    const kept = this.#kept?.connection ?? null;
    const stats = kept?.session.stats() ?? null;
    const { entries, trouble } = this.#entries();
    const bring_up_seq = this.isUp ? this.#seq : null;
    return {
      cluster,
      mode: "ssh",
      state,
      since,
      round_trip_ms: this.isUp ? round_trip_ms : null,
      worker_version: this.isUp && absent === null ? (worker?.version ?? null) : null,
      detail:
        (
          reason?.message ??
          absent?.message ??
          trouble ??
          (kept !== null && !this.isUp ? "a connection is kept for the next command" : null)
        )?.slice(0, 2_000) ?? null,
      bytes_in: stats?.bytesIn ?? (this.isUp ? bytes_in : null),
      bytes_out: stats?.bytesOut ?? (this.isUp ? bytes_out : null),
      ssh_connections_since_bring_up: bring_up_seq === null ? null : entries.filter(({ seq }) => seq > bring_up_seq).length,
      bring_up_seq,
      ledger: entries.slice(-LEDGER_SHOWN),
    };
  }

  /** Whether the last connection ended without anybody wanting it to: with a daemon that was killed, for example. */
  #wasLost(): boolean {
    const last = this.#entries().entries.findLast(({ outcome }) => outcome === "open");
    return last !== undefined && last.reason !== null;
  }

  #entries(): ReturnType<typeof entriesOf> {
    const { entries, trouble } = entriesOf(this.options.ledger, this.options.cluster);
    return { entries: entries.filter(isSsh), trouble };
  }
}
