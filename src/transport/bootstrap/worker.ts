import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { type WorkerConfiguration, WorkerConfigured } from "../../domain/worker-configuration.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { workerHangs } from "../link-failures.ts";
import type { Remote } from "../script/remote.ts";
import { activateService, observe } from "../service/activate.ts";
import { startSupervisor } from "../service/install.ts";
import { type ServiceStatus, serviceStatus } from "../service/status.ts";
import type { HostProbe } from "./probe.ts";
import { runRelay, type Whereabouts } from "./relay-command.ts";

/** How long a worker may take to drain, and to start: opening a large queue included. */
const STOP_SECONDS = 60;
/** The same where it is ended by force then. */
const KILL_AFTER_SECONDS = 5;
const START_MS = 120_000;

/**
 * Refuse a queue that another process owns, before anything is changed: one that runs on another host, and one that is not of this installation.
 *
 * @throws RelayError wrong_login_node with both hosts; queue_owned with hostname, pid and program
 */
export function refuseOwned(probe: HostProbe): void {
  const { worker } = probe;
  if (worker === null) return;
  const { hostname, pid } = worker.process;
  if (!worker.here) {
    throw new RelayError(
      "wrong_login_node",
      `the worker of this cluster runs on ${hostname}, and this is ${probe.hostname}`,
      { hostname: probe.hostname, worker_hostname: hostname, pid },
      `connect to ${hostname}; if that host is gone for good: clio-relay worker run --take-over --confirm-host-dead, on ${probe.hostname}`,
    );
  }
  if (worker.alive === true && worker.digest === null) {
    throw new RelayError(
      "queue_owned",
      `process ${pid} on ${hostname} owns the queue, and is not of this installation: ${worker.program ?? "its program cannot be seen"}`,
      { hostname, pid, program: worker.program },
      `stop it, as process ${pid} of that host`,
    );
  }
}

/** Give the host its configuration; the worker's key is made where there is none. @throws RelayError as runRelay */
export async function configureWorker(
  remote: Remote,
  place: Whereabouts & { readonly signal: AbortSignal },
  configuration: WorkerConfiguration,
): Promise<WorkerConfigured> {
  const document = await runRelay(remote, { ...place, args: ["worker", "configure"], input: JSON.stringify(configuration) });
  const result = v.safeParse(WorkerConfigured, document);
  if (result.success) return result.output;
  throw new RelayError("answer_malformed", `worker configure on that host answered something else: ${result.issues[0].message}`);
}

const Started = v.object({ state: v.picklist(["started", "already_running"]), pid: v.nullable(v.number()) });
const Stopped = v.object({ state: v.picklist(["stopped", "not_running"]), pid: v.nullable(v.number()) });

export interface WorkerWanted extends Whereabouts {
  readonly cluster: string;
  /** Of the version that it has to be. */
  readonly digest: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Whether one that runs with it has to begin anew, for its configuration. */
  readonly restart?: boolean;
  /** Whether the one that runs was asked, and did not answer; left out: it is not asked. */
  readonly isSilent?: () => Promise<boolean>;
}

export interface WorkerOutcome {
  /** `kept`: it runs with that digest. `replaced`: another version was drained. */
  readonly state: "kept" | "started" | "replaced";
  readonly pid: number | null;
  /** Who starts it again; null: nobody. */
  readonly supervised_by: ServiceStatus["launcher"];
}

/**
 * Have the worker run with a version: kept where it does, else drained and started again, by its service where it has one. Its jobs go on.
 *
 * @throws RelayError as runRelay and activateService; link_down when it runs and does not answer; observation_timeout when the old one does not end
 */
export async function ensureWorker(remote: Remote, worker: HostProbe["worker"], wanted: WorkerWanted): Promise<WorkerOutcome> {
  const { cluster, digest, home, signal, clock } = wanted;
  const service = await serviceStatus(remote, { cluster, home, signal });
  const runs = worker?.alive === true;
  if (runs && worker.digest === digest && wanted.restart !== true) {
    if (await wanted.isSilent?.()) throw workerHangs(cluster);
    const byService = service.unit?.main_pid === worker.process.pid || (service.supervisor_pid !== null && service.unit === null);
    return { state: "kept", pid: worker.process.pid, supervised_by: byService ? service.launcher : null };
  }
  const state = runs ? "replaced" : "started";
  // A service that somebody stopped stays stopped; the worker runs without it then.
  if (service.unit !== null && service.state !== "intentional-stop") {
    if (runs && service.unit.main_pid !== worker.process.pid) await stopWorker(remote, wanted);
    const action = service.unit.main_pid === null ? "start" : "restart";
    const { status } = await activateService(remote, { cluster, home, signal, clock, action });
    return { state, pid: status.unit?.main_pid ?? null, supervised_by: "systemd" };
  }
  if (runs) await stopWorker(remote, wanted);
  if (service.unit === null && service.launcher !== null && service.state !== "intentional-stop") {
    await startSupervisor(remote, wanted);
    const before = worker?.process.pid ?? null;
    const { status } = await observe(remote, wanted, (seen) => seen.state === "ready" && seen.worker?.process.pid !== before);
    return { state, pid: status.worker?.process.pid ?? null, supervised_by: service.launcher };
  }
  return { state, pid: await startWorker(remote, wanted), supervised_by: null };
}

/** Drain the worker; its jobs go on. @param kill whether it is ended by force where it does not end by itself @throws RelayError as runRelay */
export async function stopWorker(remote: Remote, place: WorkerPlace, kill = false): Promise<"stopped" | "not_running"> {
  const args = ["worker", "stop", "--cluster", place.cluster, "--timeout-seconds", String(kill ? KILL_AFTER_SECONDS : STOP_SECONDS)];
  if (kill) args.push("--kill");
  return v.parse(Stopped, await runRelay(remote, { ...place, args, withinMs: (STOP_SECONDS + 30) * 1_000 })).state;
}

type WorkerPlace = Whereabouts & { readonly cluster: string; readonly signal: AbortSignal };

/** Start the worker in the background, unless one answers. @returns its process, as far as it is known */
async function startWorker(remote: Remote, place: WorkerPlace): Promise<number | null> {
  const args = ["worker", "start", "--cluster", place.cluster];
  return v.parse(Started, await runRelay(remote, { ...place, args, withinMs: START_MS })).pid;
}
