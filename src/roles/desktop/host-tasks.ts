import type { HostTask, HostTaskOptions } from "../../api/desktop/host-views.ts";
import type { SshEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import type { FrpOffering } from "../../domain/frp.ts";
import { notMetText } from "../../domain/met.ts";
import { programsOf, type WorkerPrograms } from "../../domain/worker-programs.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { openArtifact } from "../../transport/bootstrap/artifact.ts";
import { bootstrap } from "../../transport/bootstrap/bootstrap.ts";
import { installEndpointService } from "../../transport/bootstrap/endpoint-service.ts";
import { rollback, uninstall } from "../../transport/bootstrap/install.ts";
import { whenMet } from "../../transport/bootstrap/met.ts";
import { type HostProbe, probeHost } from "../../transport/bootstrap/probe.ts";
import type { BootstrapEvent, BootstrapReport } from "../../transport/bootstrap/report.ts";
import { configureWorker, ensureWorker, refuseOwned, stopWorker } from "../../transport/bootstrap/worker.ts";
import { deliverFrpc } from "../../transport/frp/deliver.ts";
import { jarvisPayloads } from "../../transport/jarvis/deliver.ts";
import type { Remote } from "../../transport/script/remote.ts";
import { activateService, observe } from "../../transport/service/activate.ts";
import { removeService, type ServiceInstall, supervisor } from "../../transport/service/install.ts";
import { type ServiceStatus, serviceStatus } from "../../transport/service/status.ts";
import { publicKeyOf } from "../../transport/session/key-pair.ts";
import { lineOfPublicKey } from "../../transport/session/keys.ts";
import type { Attended } from "./attended-run.ts";
import { desktopKey, ownName } from "./desktop-key.ts";

/** What a task on the host of a cluster's worker works with. */
export interface HostWork {
  readonly entry: SshEntry;
  readonly remote: Remote;
  readonly attended: Attended;
  readonly configDir: string;
  readonly clock: Clock;
  /** Where the worker is to be met, with the token; null: nowhere else than over ssh. @throws RelayError configuration_error */
  readonly relay: () => { readonly relay_host: string; readonly token: string; readonly ca?: string } | null;
  /** What it is to offer at a frps, and where programs of frp lie here; null: nothing. @throws RelayError configuration_error */
  readonly frp: () => FrpWanted | null;
  /** Remember who answers in the worker's own sessions. */
  readonly pinWorkerKey: (line: string) => Promise<void>;
  /** Remember a program there in the cluster's entry. */
  readonly keepPrograms: (programs: WorkerPrograms) => Promise<void>;
  /** Jobs that have not ended, as the worker says; null where none answers. */
  readonly activeJobs: () => Promise<number | null>;
  /** Whether the worker was asked, and did not answer. */
  readonly isSilent: () => Promise<boolean>;
}

/** What a worker is to offer at a frps, but for the program. */
export interface FrpWanted extends Omit<FrpOffering, "frpc"> {
  /** One that is there already; null: it is brought from here. */
  readonly frpc: string | null;
  readonly programs: string;
}

/** Do a task. @returns its document */
export function hostTask(work: HostWork, { task, options }: HostTask): Promise<unknown> {
  switch (task) {
    case "probe":
      return probe(work);
    case "bootstrap":
      return install(work, options);
    case "rollback":
      return goBack(work);
    case "uninstall":
      return remove(work, options);
    case "service-install":
      return installServiceOf(work, options);
    case "service-restart":
      return restartService(work);
    case "service-remove":
      return removeServiceOf(work);
    case "service-status":
      return serviceStatus(work.remote, placeOf(work));
    case "worker-start":
      return startWorkerOf(work);
    case "worker-stop":
      return stopWorkerOf(work, options);
  }
}

type Place = ReturnType<typeof placeOf>;

const placeOf = ({ entry, attended }: HostWork) => ({
  cluster: entry.name,
  home: entry.core_dir,
  spool: entry.spool_dir,
  signal: attended.attending.signal,
});

/** The configuration that the worker there is to have. A frpc that it needs is brought. */
async function configurationOf(work: HostWork) {
  const { entry, configDir } = work;
  const met = work.relay();
  const frp = await offeringOf(work);
  const key = publicKeyOf(desktopKey(configDir));
  const client_keys = [`${lineOfPublicKey(key)} ${ownName()}`];
  return {
    env_setup: entry.env_setup,
    ...(entry.env_setup_strict ? { env_setup_strict: true } : {}),
    worker_capacity: entry.worker_capacity,
    ...(entry.scheduler_provider === undefined ? {} : { scheduler_provider: entry.scheduler_provider }),
    ...programsOf(entry),
    client_keys,
    ...(met === null ? {} : { relay: met }),
    ...(frp === null ? {} : { frp }),
  };
}

async function offeringOf(work: HostWork): Promise<FrpOffering | null> {
  const wanted = work.frp();
  if (wanted === null) return null;
  const { programs, frpc, ...offering } = wanted;
  if (frpc !== null) return { ...offering, frpc };
  const { attended, entry } = work;
  const { path, sent } = await deliverFrpc(work.remote, {
    home: entry.core_dir,
    directory: programs,
    signal: attended.attending.signal,
    onSent: (bytes, total) => attended.transfer(bytes, total),
  });
  attended.progress(sent ? `frpc: sent to ${path}` : "frpc: as it was");
  return { ...offering, frpc: path };
}

async function configure(work: HostWork) {
  const configured = await configureWorker(work.remote, placeOf(work), {
    schema_version: "clio-relay.worker-configuration.v1",
    cluster: work.entry.name,
    ...(await configurationOf(work)),
  });
  if (work.entry.worker_key !== configured.host_key) await work.pinWorkerKey(configured.host_key);
  return configured;
}

/** What there is. Absence is an answer. */
async function probe(work: HostWork) {
  const host = await probeHost(work.remote, placeOf(work));
  const { current, trial } = host.installation;
  const starts = trial !== null && trial.exit_code === 0;
  const executable = `${host.storage.root}/current/clio-relay`;
  const bootstrapCommand = `clio-relay cluster bootstrap --cluster ${work.entry.name}`;
  return {
    schema_version: "clio-relay.cluster-probe.v1",
    cluster: work.entry.name,
    ssh_host: work.entry.ssh_host,
    ssh_reachable: true,
    state: current === null ? "relay_not_installed" : starts ? "ready" : "relay_executable_missing",
    detail:
      current === null
        ? `nothing is installed in ${host.storage.root}`
        : starts
          ? `${trial.said.trim()} in ${host.storage.root}`
          : `${executable} does not start`,
    repair: current !== null && starts ? null : bootstrapCommand,
    relay_executable: { path: executable, present: current !== null },
    host,
  };
}

const STEP_WORDS: Readonly<Record<Extract<BootstrapEvent, { type: "step" }>["state"], string>> = {
  begin: "…",
  done: "done",
  unchanged: "as it was",
};

async function install(work: HostWork, options: HostTaskOptions<"bootstrap">): Promise<BootstrapReport> {
  const { attended, clock } = work;
  const artifacts = await Promise.all(options.artifacts.map(openArtifact));
  const { jarvis } = options;
  const payloads =
    jarvis === undefined
      ? null
      : await jarvisPayloads({ source: jarvis.source, expectedDigest: jarvis.expected_digest, wheel: jarvis.wheel });
  const report = await bootstrap(work.remote, {
    ...placeOf(work),
    artifacts,
    expectedDigest: options.expected_digest,
    version: options.version,
    allowDowngrade: options.allow_downgrade,
    isSilent: work.isSilent,
    ...(payloads === null ? {} : { jarvis: payloads }),
    configuration: {
      ...(await configurationOf(work)),
      // Whoever bootstraps has shown to the site who they are.
      renew_keys: true,
      ...(options.key_ttl_seconds === undefined ? {} : { key_ttl_seconds: options.key_ttl_seconds }),
    },
    clock,
    onEvent(event) {
      if (event.type === "sent") attended.transfer(event.bytes, event.total);
      else
        attended.progress(
          `${event.step}: ${[STEP_WORDS[event.state], event.detail].filter((word) => word !== "").join(", ")}`,
          event.state === "begin",
        );
    },
  });
  await work.pinWorkerKey(report.configured.host_key);
  if (report.jarvis !== undefined) await work.keepPrograms({ jarvis_bin: report.jarvis.program });
  const missing = await sayWhetherMet(work);
  return missing === null ? report : { ...report, notices: [...report.notices, missing] };
}

/** A worker that runs may not come to where desktops meet it, which only it can tell. @returns where that is so: a sentence that was said */
async function sayWhetherMet(work: HostWork): Promise<string | null> {
  if (work.relay() === null && work.frp() === null) return null;
  const missing = await whenMet(work.remote, placeOf(work));
  if (missing === null) return null;
  const said = notMetText(missing);
  work.attended.progress(said);
  return said;
}

async function goBack(work: HostWork) {
  const place = placeOf(work);
  const switched = await rollback(work.remote, place, work.clock);
  work.attended.progress(`version ${switched.version} is current again; restarting the worker`);
  const host = await probeHost(work.remote, place);
  const worker = await ensureWorker(work.remote, host.worker, {
    ...place,
    digest: switched.now,
    clock: work.clock,
    isSilent: work.isSilent,
  });
  await sayWhetherMet(work);
  return { schema_version: "clio-relay.cluster-rollback.v1", cluster: work.entry.name, ...switched, worker };
}

async function remove(work: HostWork, { purge }: HostTaskOptions<"uninstall">) {
  const place = placeOf(work);
  if (purge) await refuseActive(work, place);
  const service = await removeService(work.remote, { ...place, stopOnly: false });
  const host = await probeHost(work.remote, place);
  refuseOwned(host);
  const worker = host.worker?.alive === true ? await stopWorker(work.remote, place) : "not_running";
  const removed = await uninstall(work.remote, place, { cluster: work.entry.name, purge });
  return { schema_version: "clio-relay.cluster-uninstall.v1", cluster: work.entry.name, service, worker, ...removed };
}

/** Jobs may only go with their queue when there is nobody left to miss them, and that is for the worker to say. */
async function refuseActive(work: HostWork, place: Place): Promise<void> {
  const { entry } = work;
  const active = await work.activeJobs();
  if (active === 0) return;
  const host = active === null ? await probeHost(work.remote, place) : null;
  // Nothing is left whose jobs could be missed.
  if (host !== null && host.installation.current === null && !host.queue) return;
  // Only what is installed can be started and asked.
  const installed = host === null || host.installation.current !== null;
  throw new RelayError(
    "state_conflict",
    active === null
      ? `no worker of ${entry.name} says whether jobs are active, so its queue stays`
      : `${active} jobs of ${entry.name} have not ended, so its queue stays`,
    { cluster: entry.name, active_jobs: active },
    active !== null
      ? `clio-relay queue list --cluster ${entry.name}`
      : installed
        ? `clio-relay worker start --cluster ${entry.name}`
        : `clio-relay cluster bootstrap --cluster ${entry.name} brings a worker that says it; then the same again`,
  );
}

async function installServiceOf(work: HostWork, options: HostTaskOptions<"service-install">) {
  const { launcher, enable, start, allow_login_scoped: allowLoginScoped } = options;
  const { attended, clock } = work;
  attended.progress(start ? "installing the service and starting it" : "installing the service");
  let seen: ServiceStatus["state"] | null = null;
  const installed = await installEndpointService(work.remote, {
    ...placeOf(work),
    launcher,
    enable,
    start,
    allowLoginScoped,
    renew: true,
    clock,
    configure: () => configure(work),
    onLook: ({ state }) => {
      if (state !== seen) attended.progress(`the service is ${state}`);
      seen = state;
    },
  });
  if (installed.drained) attended.progress("the worker that ran without a service was drained; its jobs go on");
  if (start) await sayWhetherMet(work);
  return { schema_version: "clio-relay.endpoint-service-install.v1", cluster: work.entry.name, launcher, ...installed };
}

function refuseUninstalled({ entry }: HostWork, host: HostProbe): void {
  if (host.installation.current !== null) return;
  throw new RelayError(
    "relay_not_installed",
    `clio-relay is not installed on ${host.hostname}, in ${host.storage.root}`,
    { cluster: entry.name, host: host.hostname },
    `clio-relay cluster bootstrap --cluster ${entry.name}`,
  );
}

/** Start a service that was stopped, by what keeps it running. */
async function startService({ remote, attended, clock }: HostWork, service: ServiceInstall) {
  attended.progress("starting the service");
  if (service.launcher === "systemd") return activateService(remote, { ...service, clock, action: "start" });
  await supervisor(remote, service, true);
  return observe(remote, { ...service, clock }, isReady);
}

const isReady = ({ state }: ServiceStatus): boolean => state === "ready";

async function restartService(work: HostWork) {
  const { remote, entry, clock } = work;
  const place = placeOf(work);
  const before = await serviceStatus(remote, place);
  if (before.launcher === null) {
    throw new RelayError(
      "not_found",
      `${entry.name} has no service on ${before.hostname}`,
      { cluster: entry.name },
      before.operator_action ?? undefined,
    );
  }
  await configure(work);
  if (before.launcher === "systemd") {
    const { outcome, asked, status } = await activateService(remote, { ...place, clock, action: "restart" });
    return { schema_version: "clio-relay.endpoint-service-restart.v1", cluster: entry.name, outcome, asked, status };
  }
  // Its supervisor starts it again.
  await stopWorker(remote, place);
  return {
    schema_version: "clio-relay.endpoint-service-restart.v1",
    cluster: entry.name,
    asked: "enqueued",
    ...(await observe(remote, { ...place, clock }, isReady)),
  };
}

/** The service, with the worker that it keeps; whatever else runs there stays. */
async function removeServiceOf({ remote, entry, ...work }: HostWork) {
  const { stopped, removed } = await removeService(remote, { ...placeOf({ remote, entry, ...work }), stopOnly: false });
  return { schema_version: "clio-relay.endpoint-service-remove.v1", cluster: entry.name, stopped, removed };
}

async function startWorkerOf(work: HostWork) {
  const place = placeOf(work);
  const host = await probeHost(work.remote, place);
  refuseUninstalled(work, host);
  refuseOwned(host);
  const { paths } = await configure(work);
  const { launcher } = await serviceStatus(work.remote, place);
  if (launcher !== null && host.worker?.alive !== true) {
    // What keeps it running is what starts it.
    const service = {
      ...place,
      root: host.storage.root,
      userHome: host.home,
      launcher,
      enable: true,
      allowLoginScoped: true,
      log: paths.log,
    };
    const { outcome, status } = await startService(work, service);
    const state = outcome === "ready" ? "started" : "starting";
    if (outcome === "ready") await sayWhetherMet(work);
    return { cluster: work.entry.name, state, pid: status.worker?.process.pid ?? null, host: host.hostname, supervised_by: launcher };
  }
  const { state, pid, supervised_by } = await ensureWorker(work.remote, host.worker, {
    ...place,
    digest: host.installation.current!,
    clock: work.clock,
    isSilent: work.isSilent,
  });
  await sayWhetherMet(work);
  return { cluster: work.entry.name, state: state === "kept" ? "already_running" : "started", pid, host: host.hostname, supervised_by };
}

async function stopWorkerOf(work: HostWork, { kill }: HostTaskOptions<"worker-stop">) {
  const place = placeOf(work);
  const host = await probeHost(work.remote, place);
  refuseOwned(host);
  // What waits for its end cannot be stopped before; another one may be there by the time that it is.
  if (kill && host.worker?.alive === true) await stopWorker(work.remote, place, true);
  // What would start it again is stopped first.
  const { stopped } = await removeService(work.remote, { ...place, stopOnly: true });
  const pid = host.worker?.alive === true ? host.worker.process.pid : null;
  if (pid !== null) await stopWorker(work.remote, place, kill);
  return {
    cluster: work.entry.name,
    state: pid === null ? "not_running" : "stopped",
    pid,
    host: host.hostname,
    stopped,
  };
}
