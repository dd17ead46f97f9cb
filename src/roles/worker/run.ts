import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { keepServing, type SocketServer, serveOnSocket } from "../../api/socket-server.ts";
import { workerApp } from "../../api/worker-app.ts";
import type { WorkerServices } from "../../api/worker-services.ts";
import type { Capacity, Endpoint } from "../../domain/endpoint.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { type LinkInfo, OLDEST_PROTOCOL, PROTOCOL } from "../../domain/link.ts";
import { openArtifact } from "../../execution/artifact-content.ts";
import { lostVariables } from "../../execution/environment.ts";
import type { ShimLauncher } from "../../execution/launcher.ts";
import { aborted } from "../../lib/aborted.ts";
import { makePrivateDirectory } from "../../lib/atomic-file.ts";
import { type Clock, systemClock, timestamp } from "../../lib/clock.ts";
import { startFileThreads } from "../../lib/file-threads.ts";
import { newId } from "../../lib/ids.ts";
import { self } from "../../lib/process-identity.ts";
import { systemTimers } from "../../lib/timers.ts";
import { within } from "../../lib/within.ts";
import { type OwnedQueue, openOwnedQueue } from "../../queue/owned-queue.ts";
import { QUEUE_FILE } from "../../queue/sqlite/database-file.ts";
import type { QueueStore } from "../../queue/store.ts";
import { Ledger } from "../../transport/ledger.ts";
import { type Storage, storageOf } from "./admission.ts";
import { type Scheduling, schedulersOf } from "./allocation/scheduling.ts";
import type { Log, WorkerContext, WorkerLimits } from "./context.ts";
import { Dispatcher } from "./dispatcher.ts";
import { admitTo, enginesOf, kindsOf, type Programs, pipelineInputs } from "./engines/engines.ts";
import { lastSaid } from "./engines/jarvis/last-said.ts";
import type { FrpKeeper, FrpOffer } from "./frp-keeper.ts";
import { heartbeat } from "./heartbeat.ts";
import { announcedHostKey, hostKeyPrint } from "./host-key-print.ts";
import { Inputs } from "./inputs.ts";
import { jobPlace } from "./job-place.ts";
import { keyService } from "./key-service.ts";
import { LinkSessions } from "./link-sessions.ts";
import { serveLinkSocket } from "./link-socket.ts";
import { stderrLog } from "./log.ts";
import { spoolLogs } from "./logs.ts";
import { WorkerMetrics } from "./metrics.ts";
import { announce, withdraw, workerId } from "./presence.ts";
import type { RelayJoiner, RelayMeeting } from "./relay-joiner.ts";
import { earlierSpools } from "./shared-spools.ts";
import { workerStatus } from "./status.ts";
import { STOP_STEP_MS, stopInTurn } from "./stop-in-turn.ts";
import { cancelOf, repairQueue } from "./unreadable.ts";

/** How long answers in flight may take when the worker drains. */
const DRAIN_GRACE_MS = 5_000;

/** How long a starting worker waits for its first thread: without one, nothing that it would wait for later comes. */
const FILE_THREADS_MS = 10_000;

/** How long a starting worker waits for the one before it to be gone. */
const OWNER_PATIENCE_MS = 2_000;

export interface WorkerOptions extends Programs {
  readonly cluster: string;
  readonly version: string;
  readonly capacity: Capacity;
  readonly limits: WorkerLimits;
  readonly coreDir: string;
  readonly spoolDir: string;
  /** See WorkerContext; that of the cluster when left out. */
  readonly sharedSpoolDir?: string | null;
  /** What a batch script runs; see WorkerContext. */
  readonly command: readonly string[];
  /** No scheduler when left out. */
  readonly scheduling?: Scheduling;
  readonly socketPath: string;
  /** Where sessions with the worker's own identity are answered; nowhere when left out. */
  readonly linkSocketPath?: string;
  /** The relay-host at which it is met; nowhere when left out. */
  readonly relay?: RelayMeeting;
  /** What it offers at a frps; nothing when left out. */
  readonly frp?: FrpOffer;
  /** Where standard error goes when the worker was started in the background; kept within a bound. */
  readonly stderrFile?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  readonly executableDir: string | null;
  readonly envSetup: string | null;
  readonly envSetupStrict: boolean;
  /** Take over a queue whose owner's record is of another host. */
  readonly takeOver: boolean;
  readonly confirmHostDead: boolean;
  readonly launcher: (log: Log) => Promise<ShimLauncher> | ShimLauncher;
  readonly clock?: Clock;
  readonly log?: Log;
  /** Stands between the worker and its queue: what it makes of the store is what the worker uses. */
  readonly storeThrough?: (store: QueueStore) => QueueStore;
  /** Milliseconds that each part of it may take to stop. 10 s. */
  readonly stopStepMs?: number;
  /** Called when the socket answers. */
  readonly onReady?: (endpoint: Endpoint) => void;
}

/**
 * Run a cluster's worker until the signal is aborted, then drain: jobs go on under their shims, and the next worker takes
 * them over.
 *
 * @throws RelayError queue_owned, queue_* when the queue cannot be had; system_limit when it can have no thread
 */
export async function runWorker(options: WorkerOptions, stop: AbortSignal): Promise<void> {
  const clock = options.clock ?? systemClock;
  const log = options.log ?? stderrLog(options.stderrFile);
  const endpointId = newId("endpoint");
  if (!(await startFileThreads(FILE_THREADS_MS)))
    throw new RelayError(
      "system_limit",
      "no thread could be started; the user's processes seem to be at their limit",
      {},
      "ulimit -u shows the limit",
    );
  makePrivateDirectory(options.coreDir);
  makePrivateDirectory(options.spoolDir);
  if (options.sharedSpoolDir) makePrivateDirectory(options.sharedSpoolDir);
  const metrics = new WorkerMetrics();
  const queue = await owning(
    () =>
      openOwnedQueue(options.coreDir, {
        ownership: { identity: self(), endpointId, takeOver: options.takeOver, confirmHostDead: options.confirmHostDead, clock },
        queue: {
          clock,
          activeJobsMax: options.limits.activeJobsMax,
          leaseSeconds: LIMITS.leaseSeconds,
          onCommit: (seconds, writes) => metrics.committed(seconds, writes),
        },
        repair: false,
      }),
    clock,
  );
  try {
    const store = metrics.counted(options.storeThrough?.(queue.store) ?? queue.store);
    await serve({ options, clock, log, endpointId, metrics, store, launcher: await options.launcher(log) }, stop);
  } finally {
    if (!(await within(queue.close(), options.stopStepMs ?? STOP_STEP_MS))) log.warn("not waited for any longer: the queue");
  }
}

/** A worker that was just killed takes a moment to be gone; one that lives is still there after it. */
async function owning(acquire: () => OwnedQueue, clock: Clock): Promise<OwnedQueue> {
  const deadline = clock.monotonic() + OWNER_PATIENCE_MS;
  for (;;) {
    try {
      return acquire();
    } catch (error) {
      if (!isRelayError(error, "queue_owned") || clock.monotonic() >= deadline) throw error;
      await Bun.sleep(50);
    }
  }
}

interface Parts {
  readonly options: WorkerOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly endpointId: string;
  readonly metrics: WorkerMetrics;
  readonly store: WorkerContext["store"];
  readonly launcher: ShimLauncher;
}

async function serve(parts: Parts, stop: AbortSignal): Promise<void> {
  const { options, clock, log, endpointId, metrics, store, launcher } = parts;
  let lastError: string | null = null;
  const laneFailed = (where: string, error: unknown): void => {
    lastError = `${timestamp(clock)} ${where}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 2_000);
    log.error(where, error);
  };
  const schedulers = schedulersOf(options, { store, clock, laneFailed });
  const context: WorkerContext = {
    ...options,
    sharedSpoolDir: options.sharedSpoolDir ?? null,
    earlierSpools: await earlierSpools(options.coreDir, options.sharedSpoolDir ?? null, store),
    schedulers,
    endpointId,
    store,
    launcher,
    engines: enginesOf({ ...options, launcher, clock, schedulers, store }),
    clock,
    log,
    laneFailed,
  };
  const endpoint = endpointOf(parts);
  await store.registerEndpoint(endpoint);
  const storage = storageOf({ ...options, queueFile: QUEUE_FILE }, options.limits.minFreeBytes, clock, (directory) =>
    log.warn(`${directory} was gone, and is made again; what jobs had written there is lost`),
  );
  const dispatcher = new Dispatcher(context);
  const beat = heartbeat(context, dispatcher, () => lastError, storage.checkCore);
  const draining = new AbortController();
  const worker_id = workerId(options.coreDir);
  const identity = { coreDir: options.coreDir, comment: `clio-relay ${options.cluster}`, clock };
  const sessions = new LinkSessions({
    ...identity,
    connect: () => connectTo(options.socketPath),
    onTrouble: (error) => context.laneFailed("link session", error),
  });
  let relay: RelayJoiner | null = null;
  const inputs = new Inputs(context, options.limits.inputInlineMaxBytes, (bytes) => storage.admit(bytes));
  let frp: FrpKeeper | null = null;
  const status = () => workerStatus(context, endpoint, lastError, presenceOf(options, relay, frp));
  const services = {
    inputs,
    ...servicesOf(context, storage, dispatcher, draining.signal, status, metrics),
    metrics: async () => metrics.text(await status()),
    link: linkInfoOf(endpoint, worker_id, options.coreDir, clock),
    keys: keyService({ cluster: options.cluster, ...identity, sessions, relayHost: () => options.relay?.url.text ?? null }),
  };
  const app = workerApp(services, (error) => context.laneFailed("request", error));
  let server: Pick<SocketServer, "stop"> | null = null;
  let links: Pick<SocketServer, "stop"> | null = null;
  try {
    await beat.start();
    server = keepServing(() => serveOnSocket(app, options.socketPath), {
      onRenewed: () => log.warn(`the socket was gone; serving again on ${options.socketPath}`),
      onTrouble: (error) => context.laneFailed("socket", error),
    });
    announce(options.coreDir, { process: endpoint.process, version: options.version, worker_id, socket: options.socketPath });
    log.info(`worker of ${options.cluster} serves on ${options.socketPath}`);
    const lost = lostVariables(options.environment);
    if (lost.length > 0) log.warn(`jobs do not get what is not UTF-8 text in ${lost.join(", ")}`);
    links = listenForLinks(context, options, sessions);
    relay = await meetAt(context, options, sessions);
    frp = await offerAt(context, options);
    await Promise.race([schedulers.start(), aborted(stop)]);
    // Questions are answered meanwhile; nothing new is claimed before the fate of the old attempts is known.
    await Promise.race([dispatcher.recover(), aborted(stop)]);
    if (!stop.aborted) dispatcher.start();
    inputs.start();
    options.onReady?.(endpoint);
    await aborted(stop);
    log.info("draining: jobs go on, the next worker takes them over");
  } finally {
    draining.abort();
    await stopInTurn(
      [
        ["the attempts that are looked after", () => dispatcher.stop()],
        ["schedulers", () => schedulers.stop()],
        ["its record", () => withdraw(options.coreDir)],
        ["inputs", () => inputs.stop()],
        ["answers", () => server?.stop(DRAIN_GRACE_MS)],
        ["links", async () => void (await Promise.all([links?.stop(0), relay?.stop(), frp?.stop()]))],
        ["link sessions", () => sessions.close()],
        ["the heartbeat", () => beat.stop()],
        ["spare shims", () => launcher.close()],
      ],
      log,
      options.stopStepMs,
    );
  }
  await store.stopEndpoint(endpointId);
}

const endpointOf = ({ options, clock, endpointId }: Parts): Endpoint => ({
  endpoint_id: endpointId,
  role: "worker",
  cluster: options.cluster,
  process: self(),
  version: options.version,
  capacity: options.capacity,
  registered_at: timestamp(clock),
  last_seen_at: timestamp(clock),
  stopped_at: null,
  lane_last_error: null,
});

const linkInfoOf = (
  { cluster, version, process, registered_at }: Endpoint,
  worker_id: string,
  coreDir: string,
  clock: Clock,
): LinkInfo => ({
  protocol: PROTOCOL,
  oldest_protocol: OLDEST_PROTOCOL,
  version,
  cluster,
  worker_id,
  host: { hostname: process.hostname, boot_id: process.boot_id },
  started_at: registered_at,
  // Made when the worker is configured from a desktop, perhaps after its start.
  get host_key() {
    return hostKeyPrint(coreDir);
  },
  get next_host_key() {
    return announcedHostKey(coreDir, clock.now());
  },
});

function listenForLinks(
  context: WorkerContext,
  { linkSocketPath }: WorkerOptions,
  sessions: LinkSessions,
): Pick<SocketServer, "stop"> | null {
  if (linkSocketPath === undefined) return null;
  const onTrouble = (error: unknown): void => context.laneFailed("link socket", error);
  const serveLinks = (): Promise<SocketServer> => serveLinkSocket({ socketPath: linkSocketPath, sessions, onTrouble });
  return keepServing(serveLinks, {
    onRenewed: () => context.log.warn(`the link socket was gone; listening again on ${linkSocketPath}`),
    onTrouble,
  });
}

/** The worker at its relay-host; null where it has none. */
async function meetAt(
  context: WorkerContext,
  { relay, coreDir, cluster }: WorkerOptions,
  sessions: LinkSessions,
): Promise<RelayJoiner | null> {
  if (relay === undefined) return null;
  const [{ RelayJoiner: Joiner }, { hostKey }] = await Promise.all([import("./relay-joiner.ts"), import("./host-key.ts")]);
  const { clock, log } = context;
  return new Joiner({
    ...relay,
    cluster,
    hostKey: () => hostKey(coreDir, `clio-relay ${cluster}`, clock),
    sessions,
    clock,
    log,
    ledger: new Ledger(path.join(coreDir, "connections.jsonl"), clock),
    timers: systemTimers,
  });
}

/** Where it is to be met, and whether it is; it answers before it goes there. */
function presenceOf({ relay: meeting, frp: offer }: WorkerOptions, relay: RelayJoiner | null, frp: FrpKeeper | null) {
  return {
    metAt: relay?.presence ?? (meeting === undefined ? null : { place: meeting.url.text, registered: false, reason: null }),
    frp: frp?.presence ?? (offer === undefined ? null : { server: offer.place, reached: false, reason: null }),
  };
}

/** The worker at its frps; null where it has none. */
async function offerAt({ clock, log }: WorkerContext, { frp, linkSocketPath, cluster }: WorkerOptions): Promise<FrpKeeper | null> {
  if (frp === undefined || linkSocketPath === undefined) return null;
  const { FrpKeeper: Keeper } = await import("./frp-keeper.ts");
  return new Keeper({ ...frp, cluster, linkSocket: linkSocketPath, clock, log, timers: systemTimers });
}

/** A connection to the worker's own socket. */
function connectTo(socketPath: string): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const connection = net.connect({ path: socketPath, allowHalfOpen: true } as net.NetConnectOpts);
    connection.once("connect", () => resolve(connection));
    connection.once("error", reject);
  });
}

/** What the HTTP app needs of this worker. */
function servicesOf(
  context: WorkerContext,
  storage: Storage,
  dispatcher: Dispatcher,
  draining: AbortSignal,
  status: WorkerServices["status"],
  metrics: WorkerMetrics,
): Omit<WorkerServices, "link" | "keys" | "inputs" | "metrics"> {
  const { cluster, version, clock, store, limits } = context;
  return {
    cluster,
    version,
    clock,
    store: { ...store, requestCancel: cancelOf(context, dispatcher) },
    activeJobsMax: limits.activeJobsMax,
    engines: kindsOf(context.engines),
    laneFor: (submission) => admitTo(context.engines, submission),
    pipelineInputs: (question) => pipelineInputs(context.engines, question),
    logs: spoolLogs(store, context),
    scheduler: context.schedulers,
    artifacts: {
      async open(artifact, range) {
        const file = await openArtifact(artifact, jobPlace(context, artifact.job_id));
        return file.stream(range);
      },
    },
    draining,
    async admit() {
      try {
        storage.admit();
      } catch (error) {
        metrics.refused(error);
        // Besides the client, whoever looks after the worker has to know.
        if (!isRelayError(error, "storage_admission_refused")) context.laneFailed("storage", error);
        throw error;
      }
    },
    workExpected: (lane) => dispatcher.expect(lane),
    obstacle: (job) => dispatcher.obstacle(job),
    jarvis: async (jobId) => dispatcher.run(jobId)?.jarvis ?? (await lastSaid(store, jobId)),
    status,
    audit: () => store.audit(),
    repair: () => repairQueue(context, dispatcher),
  };
}
