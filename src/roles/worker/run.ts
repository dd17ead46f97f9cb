import { workerApp } from "../../api/worker-app.ts";
import type { Endpoint } from "../../domain/endpoint.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { type LinkInfo, OLDEST_PROTOCOL, PROTOCOL } from "../../domain/link.ts";
import { lostVariables } from "../../execution/environment.ts";
import type { ShimLauncher } from "../../execution/launcher.ts";
import { makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import { startFileThreads } from "../../lib/files/file-threads.ts";
import { newId } from "../../lib/ids.ts";
import { self } from "../../lib/system/process-identity.ts";
import { aborted } from "../../lib/waiting/aborted.ts";
import { type Clock, systemClock, timestamp } from "../../lib/waiting/clock.ts";
import { within } from "../../lib/waiting/within.ts";
import { type OwnedQueue, openOwnedQueue } from "../../queue/owned-queue.ts";
import { QUEUE_FILE } from "../../queue/sqlite/database-file.ts";
import { storageOf } from "./admission.ts";
import { schedulersOf } from "./allocation/scheduling.ts";
import type { Log, WorkerContext } from "./context.ts";
import { Dispatcher } from "./dispatcher.ts";
import { Doors, keyComment } from "./doors.ts";
import { enginesOf } from "./engines/engines.ts";
import { heartbeat } from "./heartbeat.ts";
import { announcedHostKey, hostKeyPrint } from "./host-key-print.ts";
import { Inputs } from "./inputs.ts";
import { keyService } from "./key-service.ts";
import { stderrLog } from "./log.ts";
import { WorkerMetrics } from "./metrics.ts";
import type { WorkerOptions } from "./options.ts";
import { announce, withdraw, workerId } from "./presence.ts";
import { servicesOf } from "./services.ts";
import { earlierSpools } from "./shared-spools.ts";
import { workerStatus } from "./status.ts";
import { STOP_STEP_MS, stopInTurn } from "./stop-in-turn.ts";

/** How long answers in flight may take when the worker drains. */
const DRAIN_GRACE_MS = 5_000;

/** How long a starting worker waits for its first thread: without one, nothing that it would wait for later comes. */
const FILE_THREADS_MS = 10_000;

/** How long a starting worker waits for the one before it to be gone. */
const OWNER_PATIENCE_MS = 2_000;

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

/** The newest failure that the worker survived, for its status. */
class LastFailure {
  text: string | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  readonly remember = (where: string, error: unknown): void => {
    this.text = `${timestamp(this.clock)} ${where}: ${error instanceof Error ? error.message : String(error)}`.slice(0, 2_000);
    this.log.error(where, error);
  };
}

/** Answer, and run what is in the queue, until the signal is aborted; then stop what was started. */
async function serve(parts: Parts, stop: AbortSignal): Promise<void> {
  const { options, clock, log, endpointId, store } = parts;
  const failure = new LastFailure(clock, log);
  const context = await contextOf(parts, failure);
  const endpoint = endpointOf(parts);
  await store.registerEndpoint(endpoint);
  const working = workingOf(context, parts, endpoint, failure);
  try {
    await answer(context, working, endpoint, options);
    await work(context, working, stop);
    options.onReady?.(endpoint);
    await aborted(stop);
    log.info("draining: jobs go on, the next worker takes them over");
  } finally {
    await drain(context, working, options);
  }
  await store.stopEndpoint(endpointId);
}

async function contextOf({ options, clock, log, endpointId, store, launcher }: Parts, failure: LastFailure): Promise<WorkerContext> {
  const sharedSpoolDir = options.sharedSpoolDir ?? null;
  const schedulers = schedulersOf(options, { store, clock, laneFailed: failure.remember });
  return {
    ...options,
    sharedSpoolDir,
    earlierSpools: await earlierSpools(options.coreDir, sharedSpoolDir, store),
    schedulers,
    endpointId,
    store,
    launcher,
    engines: enginesOf({ ...options, launcher, clock, schedulers, store }),
    clock,
    log,
    laneFailed: failure.remember,
  };
}

type Working = ReturnType<typeof workingOf>;

/** The parts that work, none of which does yet, and the app that answers for them. */
function workingOf(context: WorkerContext, { options, metrics }: Parts, endpoint: Endpoint, failure: LastFailure) {
  const { clock, log } = context;
  const { coreDir, cluster, limits } = options;
  const storage = storageOf({ ...options, queueFile: QUEUE_FILE }, limits.minFreeBytes, clock, (directory) =>
    log.warn(`${directory} was gone, and is made again; what jobs had written there is lost`),
  );
  const dispatcher = new Dispatcher(context);
  const doors = new Doors(context, options);
  const inputs = new Inputs(context, limits.inputInlineMaxBytes, (bytes) => storage.admit(bytes));
  const draining = new AbortController();
  const worker_id = workerId(coreDir);
  const { sessions } = doors;
  const status = () => workerStatus(context, endpoint, failure.text, doors.presence);
  const services = {
    inputs,
    ...servicesOf(context, storage, dispatcher, draining.signal, status, metrics),
    metrics: async () => metrics.text(await status()),
    link: linkInfoOf(endpoint, worker_id, coreDir, clock),
    keys: keyService({ cluster, coreDir, comment: keyComment(cluster), clock, sessions, relayHost: () => options.relay?.url.text ?? null }),
  };
  return {
    dispatcher,
    doors,
    inputs,
    draining,
    worker_id,
    beat: heartbeat(context, dispatcher, () => failure.text, storage.checkCore),
    app: workerApp(services, (error) => context.laneFailed("request", error)),
  };
}

/** Be there for clients, from near and far. */
async function answer({ log }: WorkerContext, { beat, doors, app, worker_id }: Working, endpoint: Endpoint, options: WorkerOptions) {
  const { coreDir, cluster, socketPath, version } = options;
  await beat.start();
  doors.answer(app);
  announce(coreDir, { process: endpoint.process, version, worker_id, socket: socketPath });
  log.info(`worker of ${cluster} serves on ${socketPath}`);
  const lost = lostVariables(options.environment);
  if (lost.length > 0) log.warn(`jobs do not get what is not UTF-8 text in ${lost.join(", ")}`);
  await doors.meet();
}

/** Begin to run what is in the queue. Nothing new is claimed before the fate of the old attempts is known. */
async function work({ schedulers }: WorkerContext, { dispatcher, inputs }: Working, stop: AbortSignal): Promise<void> {
  await Promise.race([schedulers.start(), aborted(stop)]);
  await Promise.race([dispatcher.recover(), aborted(stop)]);
  if (!stop.aborted) dispatcher.start();
  inputs.start();
}

async function drain(context: WorkerContext, working: Working, { coreDir, stopStepMs }: WorkerOptions): Promise<void> {
  const { dispatcher, doors, inputs, draining, beat } = working;
  draining.abort();
  await stopInTurn(
    [
      ["the attempts that are looked after", () => dispatcher.stop()],
      ["schedulers", () => context.schedulers.stop()],
      ["its record", () => withdraw(coreDir)],
      ["inputs", () => inputs.stop()],
      ["answers", () => doors.stopAnswers(DRAIN_GRACE_MS)],
      ["links", () => doors.stopLinks()],
      ["link sessions", () => doors.sessions.close()],
      ["the heartbeat", () => beat.stop()],
      ["spare shims", () => context.launcher.close()],
    ],
    context.log,
    stopStepMs,
  );
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
