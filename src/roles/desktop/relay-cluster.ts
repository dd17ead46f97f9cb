import { type AttendedRequest, LEDGER_SHOWN, type LinkStatus } from "../../api/desktop/link-views.ts";
import { type FrpEntry, isFrp, type OutboundEntry, type RelayEntry, routeRevision } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { relayToken } from "../../config/relay-token.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { LinkInfo } from "../../domain/link.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import { watchNetwork } from "../../lib/system/network-watch.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { Pace } from "../../lib/waiting/pace.ts";
import { systemTimers } from "../../lib/waiting/timers.ts";
import { isSsh, type Ledger } from "../../transport/ledger.ts";
import { Link, type LinkSnapshot } from "../../transport/link.ts";
import type { LinkTransport } from "../../transport/link-transport.ts";
import { meetWorker } from "../../transport/meet.ts";
import type { CaFile } from "../../transport/outbound/certificates.ts";
import { fingerprintOf, publicKeyFromLine } from "../../transport/session/keys.ts";
import type { WorkerSessionKeys } from "../../transport/session/worker-session.ts";
import { AttendedRun } from "./attended-run.ts";
import { type Follow, following } from "./attended-stream.ts";
import { desktopKey } from "./desktop-key.ts";
import { overFrp } from "./frp-way.ts";
import { entriesOf } from "./ledger-entries.ts";
import { expectedWorker, pinnedKeys } from "./worker-pins.ts";

/** How long a desktop stays at the relay-host for a worker that is not there, before it comes anew; milliseconds. */
const WAIT_MS = 60_000;
/** The same at a frps, whose frpc may live on and be deaf. */
const AT_FRPS_MS = 10_000;
/** The same at a relay-host, where it may be in either of two rooms. */
const EITHER_MS = 3_000;
/** How long a person's `connect` waits. */
const PATIENCE_MS = 15_000;
/** Who dials what nobody asks for. */
const REQUESTED_BY = "the desktop daemon";
/** How long the other side may take to answer after this machine has moved. */
const MOVED_MS = 5_000;

export interface RelayClusterOptions {
  readonly cluster: string;
  readonly env: Environment;
  readonly version: string;
  readonly clock: Clock;
  /** The cluster's entry as it is now. @throws RelayError cluster_not_found, configuration_error */
  readonly entry: () => OutboundEntry;
  /** @throws RelayError local_file_unusable */
  readonly ledger: () => Ledger;
  readonly caFiles: () => readonly CaFile[];
  readonly onChange: (snapshot: LinkSnapshot) => void;
  readonly configDir: string;
  readonly paths: Paths;
  /** Gets what a person may want to know of a link that is up. */
  readonly notice: (text: string) => void;
  readonly pinWorker: (info: LinkInfo) => Promise<void>;
  readonly report: (error: unknown) => void;
}

/** A cluster whose worker is met where both sides dial out to, a relay-host or a frps: its link is had, and had again, without anybody. */
export class RelayCluster {
  readonly link: Link;
  readonly #pace: Pace;
  readonly #off: () => void;
  #wanted = false;
  #upSince: number | null = null;
  #transport: LinkTransport | null = null;
  /** Of the entry that the link was made by, or is tried by. */
  #route: string | null = null;
  /** Entry of the ledger of the connection that the link is on. */
  #seq: number | null = null;
  /** Which of the ways through a frps carries the link, and why it is not the direct one. */
  #carrier: FrpEntry["mode"] | null = null;
  #fallback: RelayError | null = null;
  /** What a person's command has around it that the daemon has not: the addresses of proxies. */
  #variables: Readonly<Record<string, string | undefined>>;

  constructor(private readonly options: RelayClusterOptions) {
    const { cluster, clock, version, env } = options;
    this.#variables = env.variables;
    this.#pace = new Pace(clock, systemTimers);
    this.#off = watchNetwork(() => void this.#moved());
    this.link = new Link({
      cluster,
      version,
      clock,
      afterDrop: "down",
      regain: () => (this.#wanted ? this.#regain() : null),
      onChange: (now) => this.#changed(now),
      onWorker: (info) => this.#pin(info),
    });
  }

  #changed(now: LinkSnapshot): void {
    const at = this.options.clock.monotonic();
    if (now.state === "up") {
      this.#upSince ??= at;
      if (now.worker !== null) this.#pin(now.worker);
    } else if (now.state === "dropped") {
      if (this.#upSince !== null) this.#pace.lasted(at - this.#upSince);
      this.#upSince = null;
    }
    this.options.onChange(now);
  }

  #pin(info: LinkInfo): void {
    this.options.pinWorker(info).catch(this.options.report);
  }

  /** Have the link from here on, unless nobody knows yet who has to answer. */
  start(): void {
    if (this.options.entry().worker_key === null) return;
    this.#wanted = true;
    this.link.keep(this.#regain());
  }

  /** The entry may be another one now: what leads elsewhere is given up. */
  async entryChanged(): Promise<void> {
    if (this.#route !== null && this.#route !== routeRevision(this.options.entry())) await this.disconnect();
    this.start();
    this.#pace.hurry();
  }

  #regain() {
    const until = new AbortController().signal;
    return {
      bringUp: (signal: AbortSignal) => this.#bringUp(signal),
      expected: () => {
        return expectedWorker(this.options.entry());
      },
      until,
      eager: false,
      pace: this.#pace,
      report: this.options.report,
    };
  }

  async #bringUp(signal: AbortSignal): Promise<LinkTransport> {
    const { cluster, configDir } = this.options;
    const entry = this.options.entry();
    const pinned = pinnedKeys(entry);
    if (pinned === null) throw unknownWorker(cluster);
    const keys = { workerKeys: pinned, privateKey: desktopKey(configDir) };
    this.#route = routeRevision(entry);
    this.#fallback = null;
    const transport = isFrp(entry) ? await this.#overFrp(entry, keys, signal) : await this.#meetEither(entry, keys, signal);
    this.#transport = transport;
    this.#seq = this.#entries().entries.findLast((one) => !isSsh(one))?.seq ?? null;
    return transport;
  }

  /** Its room is that of one key at a time: where it is not met by the pinned one, it may have the one that it has announced. */
  async #meetEither(entry: RelayEntry, keys: WorkerSessionKeys, signal: AbortSignal): Promise<LinkTransport> {
    if (keys.workerKeys.length === 1) return this.#meet(entry, keys, WAIT_MS, signal);
    try {
      return await this.#meet(entry, keys, EITHER_MS, signal);
    } catch (error) {
      if (!isRelayError(error, "worker_absent")) throw error;
      return this.#meet(entry, { ...keys, workerKeys: keys.workerKeys.toReversed() }, EITHER_MS, signal);
    }
  }

  #meet(entry: RelayEntry, keys: WorkerSessionKeys, waitMs: number, signal: AbortSignal): Promise<LinkTransport> {
    const { cluster, env, version, ledger, caFiles } = this.options;
    const place = {
      url: parseRelayUrl(entry.relay_host),
      token: relayToken(env, entry.relay_token_file),
      surroundings: { variables: this.#variables, caFiles: caFiles() },
      version,
    };
    this.#carrier = null;
    return meetWorker(
      place,
      { ledger: ledger(), cluster, requestedBy: REQUESTED_BY, signal },
      {
        keys,
        waitMs,
        onWaiting: (what) => {
          if (what === "worker") this.link.hindered(absent(cluster, entry));
        },
      },
    );
  }

  async #overFrp(entry: FrpEntry, keys: WorkerSessionKeys, signal: AbortSignal): Promise<LinkTransport> {
    const { ledger, caFiles, env, paths, report, notice } = this.options;
    const way = { entry, keys, ledger: ledger(), paths, env, variables: this.#variables, caFiles: caFiles(), report };
    const transport = await overFrp(
      {
        ...way,
        requestedBy: REQUESTED_BY,
        wait: { forMs: AT_FRPS_MS, onAbsent: (reason) => this.link.hindered(reason) },
        onFallback: (reason) => {
          this.#fallback = reason;
          notice(`it goes through frps: ${reason.message}`);
        },
        onCarrier: (carrier) => {
          this.#carrier = carrier;
        },
      },
      signal,
    );
    this.#carrier = transport.carrier();
    return transport;
  }

  /** The machine has other addresses: what was on the old ones may be dead without a word. */
  async #moved(): Promise<void> {
    const transport = this.#transport;
    if (!this.isUp || transport === null) return this.#pace.hurry();
    try {
      await transport.session.roundTrip(AbortSignal.timeout(MOVED_MS));
    } catch {
      transport.session.close();
    }
  }

  /** Have the link now, for somebody who is there, and from here on. */
  connect(request: AttendedRequest): Follow {
    const work = new AttendedRun(
      request.requested_by,
      request.interactive,
      async ({ attending, progress }) => {
        const entry = this.options.entry();
        if (entry.worker_key === null) throw unknownWorker(entry.name);
        // The command's own proxies count, too: the daemon may have been started elsewhere.
        this.#variables = { ...this.options.env.variables, ...request.variables };
        this.#wanted = true;
        this.link.keep(this.#regain());
        progress(`meeting the worker at ${placeOf(entry)}`);
        await this.link.tryNow(attending.signal, PATIENCE_MS);
        return this.status();
      },
      this.options.report,
    );
    return following(work, true);
  }

  get isUp(): boolean {
    const { state } = this.link.snapshot();
    return state === "up" || state === "degraded";
  }

  async disconnect(): Promise<void> {
    this.#wanted = false;
    this.#route = null;
    await this.link.disconnect();
  }

  async close(): Promise<void> {
    this.#off();
    await this.disconnect();
  }

  /** As it is now; nobody is asked. */
  status(): LinkStatus {
    const { cluster } = this.options;
    const { state, since, round_trip_ms, worker, reason, bytes_in, bytes_out } = this.link.snapshot();
    const { entries, trouble } = this.#entries();
    const up = this.isUp;
    const seq = up ? this.#seq : null;
    const entry = this.#entryNow();
    const unknown =
      entry?.worker_key === null ? "it is not known yet who has to answer there: clio-relay cluster bootstrap, or --pair" : null;
    return {
      cluster,
      mode: entry?.mode ?? "relay",
      ...(entry !== null && isFrp(entry) ? { carrier: up ? this.#carrier : null } : {}),
      state,
      since,
      round_trip_ms: up ? round_trip_ms : null,
      worker_version: up ? (worker?.version ?? null) : null,
      detail:
        (reason === null ? (trouble ?? unknown ?? this.#fallback?.message ?? null) : `${reason.code}: ${reason.message}`)?.slice(
          0,
          2_000,
        ) ?? null,
      bytes_in: up ? bytes_in : null,
      bytes_out: up ? bytes_out : null,
      ssh_connections_since_bring_up: seq === null ? null : entries.filter((one) => isSsh(one) && one.seq > seq).length,
      bring_up_seq: seq,
      ledger: entries.slice(-LEDGER_SHOWN),
    };
  }

  /** Null where there is none any more. */
  #entryNow(): OutboundEntry | null {
    try {
      return this.options.entry();
    } catch {
      return null;
    }
  }

  #entries(): ReturnType<typeof entriesOf> {
    return entriesOf(this.options.ledger, this.options.cluster);
  }
}

const unknownWorker = (cluster: string): RelayError =>
  new RelayError(
    "link_bringup_failed",
    `it is not known who has to answer for ${cluster}: its key comes from bootstrap, or from pairing`,
    { cluster },
    `clio-relay cluster bootstrap --cluster ${cluster}, or clio-relay cluster add --name ${cluster} --pair`,
  );

const placeOf = (entry: OutboundEntry): string => (isFrp(entry) ? `${entry.frp.server_addr}:${entry.frp.server_port}` : entry.relay_host);

const absent = (cluster: string, { relay_host, worker_key }: RelayEntry): RelayError =>
  new RelayError(
    "worker_absent",
    `the worker of ${cluster} is not at ${relay_host}; it is waited for`,
    { cluster, relay_host, ...(worker_key === null ? {} : { worker_key: fingerprintOf(publicKeyFromLine(worker_key)) }) },
    `on the cluster: clio-relay worker status says whether it runs, and where it is met; one that is met elsewhere is put there by clio-relay worker stop, then clio-relay worker pair --relay-host ${relay_host}; clio-relay worker keys list, for with another key it is taken by a new pairing code or cluster bootstrap`,
  );
