import * as v from "valibot";
import { Count, Id, looseText } from "../../domain/primitives.ts";
import { WorkerRecord } from "../../domain/worker-record.ts";
import type { Answer } from "../script/frame.ts";
import layout from "../script/layout.sh" with { type: "text" };
import lock from "../script/lock.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import crontab from "./crontab.sh" with { type: "text" };
import manager from "./manager.sh" with { type: "text" };
import statusText from "./status.sh" with { type: "text" };
import { unitName } from "./unit.ts";

const SCRIPT: Script = { name: "service status", text: layout + lock + manager + crontab + statusText };
/** How long a worker may run as a service before it has to serve. */
const SERVING_SECONDS = 120;

export const SERVICE_STATES = [
  /** It runs, and serves. */
  "ready",
  /** It is on its way: starting, stopping, between two tries, or not serving yet. */
  "recovering",
  /** Somebody stopped it. */
  "intentional-stop",
  /** The manager has given up. */
  "failed",
  /** It should run, and was never started: after a boot without linger, for one. */
  "inactive-unexpected",
  "not-installed",
  /** It runs and does not serve, or cannot be told. */
  "degraded",
] as const;

const word = looseText(1_024);

/** How the service of a cluster's worker is (systemctl(1), show, has most of the words). */
export const ServiceStatus = v.strictObject({
  schema_version: v.literal("clio-relay.endpoint-service-status.v1"),
  cluster: Id,
  hostname: word,
  state: v.picklist(SERVICE_STATES),
  /** Who starts the worker again; null where nobody does. */
  launcher: v.nullable(v.picklist(["systemd", "setsid", "cron"])),
  unit: v.nullable(
    v.strictObject({
      name: word,
      active_state: word,
      sub_state: word,
      result: word,
      unit_file_state: word,
      main_pid: v.nullable(Count),
      restarts: v.nullable(Count),
      invocation_id: v.nullable(word),
      /** Whether a start, stop or restart is in the manager's queue. */
      job: v.boolean(),
    }),
  ),
  /** Process of the supervisor of ours; null where none runs here. */
  supervisor_pid: v.nullable(Count),
  /** Whether the user's services stay when the user is not logged in; null where that cannot be told. */
  linger: v.nullable(v.boolean()),
  /** `persistent`: it is there from boot on. `login-scoped`: it ends with the user's last session. `unproven`: cron is to start it, and whether one runs cannot be seen. */
  persistence: v.picklist(["persistent", "login-scoped", "until-reboot", "unproven", "not-installed"]),
  /** What a person would have to do, as a command where there is one; null where nothing is to be done. */
  operator_action: v.nullable(word),
  /** The worker that serves on this host, by its own record; null where none does. */
  worker: v.nullable(WorkerRecord),
});
export type ServiceStatus = v.InferOutput<typeof ServiceStatus>;
export type ServiceState = ServiceStatus["state"];

export interface ServicePlace {
  readonly cluster: string;
  /** The installation's directory on the host; null for the usual place. */
  readonly home: string | null;
  readonly signal: AbortSignal;
}

/** How a service is; nothing is changed. @throws RelayError as Remote.run */
export async function serviceStatus(remote: Remote, { cluster, home, signal }: ServicePlace): Promise<ServiceStatus> {
  const values = { a_cluster: cluster, a_home: home ?? "", a_unit: unitName(cluster) };
  return statusOf(cluster, accepted(await remote.run(SCRIPT, { values, signal }), SCRIPT));
}

type Shown = Readonly<Record<string, string>>;

/** @param answer of status.sh */
export function statusOf(cluster: string, answer: Answer): ServiceStatus {
  const shown: Shown = Object.fromEntries(
    answer.all("show").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  const worker = workerOf(answer);
  const text = answer.last("launcher");
  const launched = text === "setsid" || text === "cron" ? text : null;
  const unit = answer.last("manager") === "yes" && shown["LoadState"] !== "not-found" && shown["LoadState"] !== undefined;
  const launcher = unit ? "systemd" : launched;
  const linger = answer.last("linger") === null ? null : answer.last("linger") === "yes";
  const supervisor = answer.count("supervisor");
  const state = unit
    ? unitState(shown, worker, answer.count("uptime"))
    : launched === null
      ? "not-installed"
      : supervisedState(supervisor, answer.last("stopped") === "yes", worker);
  const cron = answer.last("cron");
  const persistence = persistenceOf(launcher, linger, shown, cron);
  return {
    schema_version: "clio-relay.endpoint-service-status.v1",
    cluster,
    hostname: answer.one("hostname"),
    state,
    launcher,
    unit: unit ? unitOf(cluster, shown) : null,
    supervisor_pid: supervisor,
    linger,
    persistence,
    operator_action: actionFor(state, { persistence, launcher, manager: answer.last("manager") === "yes", cron }, answer, cluster),
    worker,
  };
}

/** A record that names no process of this host counts for nothing here: that of a worker that was killed, or of another host. */
function workerOf(answer: Answer): WorkerRecord | null {
  try {
    const result = v.safeParse(WorkerRecord, JSON.parse(answer.last("worker") ?? "null"));
    return result.success && answer.count("worker_start") === result.output.process.start_time ? result.output : null;
  } catch {
    return null;
  }
}

const number = (text: string | undefined): number | null => (text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null);

const unitOf = (cluster: string, shown: Shown): ServiceStatus["unit"] => ({
  name: unitName(cluster),
  active_state: shown["ActiveState"] ?? "unknown",
  sub_state: shown["SubState"] ?? "unknown",
  result: shown["Result"] ?? "unknown",
  unit_file_state: shown["UnitFileState"] ?? "unknown",
  main_pid: number(shown["MainPID"]) || null,
  restarts: number(shown["NRestarts"]),
  invocation_id: shown["InvocationID"] || null,
  job: hasJob(shown),
});

const hasJob = (shown: Shown): boolean => (shown["Job"] ?? "") !== "" && shown["Job"] !== "0";

/** systemd.service(5) and systemctl(1), "show". With Restart=always nothing but a stop, or no start, leaves a unit inactive. */
function unitState(shown: Shown, worker: WorkerRecord | null, uptime: number | null): ServiceState {
  if (shown["LoadState"] !== "loaded") return "degraded";
  if (hasJob(shown)) return "recovering";
  switch (shown["ActiveState"]) {
    case "active": {
      if (shown["SubState"] !== "running") return "recovering";
      if (worker !== null && worker.process.pid === number(shown["MainPID"])) return "ready";
      const since = number(shown["ActiveEnterTimestampMonotonic"]);
      const long = uptime !== null && since !== null && uptime - since / 1e6 > SERVING_SECONDS;
      return long ? "degraded" : "recovering";
    }
    case "activating":
    case "deactivating":
    case "reloading":
      return "recovering";
    case "failed":
      return "failed";
    case "inactive": {
      const started = (number(shown["ExecMainStartTimestampMonotonic"]) ?? 0) > 0;
      return started || shown["UnitFileState"] !== "enabled" ? "intentional-stop" : "inactive-unexpected";
    }
    default:
      return "degraded";
  }
}

function supervisedState(supervisor: number | null, stopped: boolean, worker: WorkerRecord | null): ServiceState {
  if (supervisor !== null) return worker === null ? "recovering" : "ready";
  return stopped ? "intentional-stop" : "inactive-unexpected";
}

/** @param cron whether a cron runs there: `yes`, `no`, `unknown`; null where users have none */
function persistenceOf(
  launcher: ServiceStatus["launcher"],
  linger: boolean | null,
  shown: Shown,
  cron: string | null,
): ServiceStatus["persistence"] {
  if (launcher === null) return "not-installed";
  if (launcher === "cron") return cron === "yes" ? "persistent" : cron === "unknown" ? "unproven" : "until-reboot";
  if (launcher === "setsid") return "until-reboot";
  if (linger !== true) return "login-scoped";
  return shown["UnitFileState"] === "enabled" ? "persistent" : "until-reboot";
}

interface Kept {
  readonly persistence: ServiceStatus["persistence"];
  readonly launcher: ServiceStatus["launcher"];
  /** Whether the user has a service manager in reach. */
  readonly manager: boolean;
  /** As persistenceOf has it. */
  readonly cron: string | null;
}

function actionFor(state: ServiceState, { persistence, launcher, manager, cron }: Kept, answer: Answer, cluster: string): string | null {
  if (state === "not-installed" && answer.last("missing") === "yes") return `clio-relay cluster bootstrap --cluster ${cluster}`;
  if (state === "not-installed") return installCommand(cluster, manager ? "systemd" : cron === "yes" ? "cron" : "setsid");
  if (persistence === "login-scoped") return `loginctl enable-linger ${answer.one("user")}`;
  if (state === "failed" || state === "inactive-unexpected" || state === "intentional-stop" || state === "degraded") {
    return `clio-relay cluster restart-endpoint-service --cluster ${cluster}`;
  }
  return launcher === "cron" && persistence === "until-reboot" ? `have a cron started on ${answer.one("hostname")}, where none runs` : null;
}

/** What gives a cluster's worker a service, by what a host's users have. */
export const installCommand = (cluster: string, launcher: "systemd" | "setsid" | "cron"): string =>
  `clio-relay cluster install-endpoint-service --cluster ${cluster} ${launcher === "systemd" ? "--start --enable" : `--launcher ${launcher}`}`;
