import type { Whereabouts } from "../bootstrap/relay-command.ts";
import layout from "../script/layout.sh" with { type: "text" };
import lock from "../script/lock.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import crontab from "./crontab.sh" with { type: "text" };
import supervisorText from "./install-supervisor.sh" with { type: "text" };
import unitText from "./install-unit.sh" with { type: "text" };
import manager from "./manager.sh" with { type: "text" };
import removeText from "./remove.sh" with { type: "text" };
import startText from "./start-supervisor.sh" with { type: "text" };
import supervise from "./supervise.sh" with { type: "text" };
import { unitName, userUnit } from "./unit.ts";

const UNIT: Script = { name: "install the service", text: layout + lock + manager + unitText };
const SUPERVISOR: Script = { name: "install the supervisor", text: layout + lock + startText + crontab + supervisorText };
const START: Script = { name: "start the supervisor", text: layout + lock + startText };
const REMOVE: Script = { name: "remove the service", text: layout + lock + manager + crontab + removeText };
const WITHIN_MS = 300_000;

export interface ServiceInstall extends Whereabouts {
  readonly cluster: string;
  /** Of the installation, as Installed and HostProbe have them. */
  readonly root: string;
  readonly userHome: string;
  readonly launcher: "systemd" | "setsid" | "cron";
  /** Start it with the machine. */
  readonly enable: boolean;
  /** Go without linger: the service ends with the user's last session. */
  readonly allowLoginScoped: boolean;
  /** Path of the worker's log on the host, for launchers that have none of their own. */
  readonly log: string;
  readonly signal: AbortSignal;
}

/** What was done. */
export interface ServiceInstalled {
  readonly written: boolean;
  readonly enabled: boolean;
  readonly linger: boolean | null;
}

/**
 * Put a service in place, or find that it is there. Nothing is started. With systemd nothing is written before logind has said that the user lingers.
 *
 * @throws RelayError linger_required, service_failed, host_unfit, state_conflict, and as Remote.run
 */
export async function installService(remote: Remote, install: ServiceInstall): Promise<ServiceInstalled> {
  const { cluster, home, signal } = install;
  const common = { a_home: home ?? "", a_cluster: cluster, a_unit: unitName(cluster) };
  if (install.launcher === "systemd") {
    const environment = {
      ...(home === null ? {} : { CLIO_RELAY_HOME: install.root }),
      ...(install.spool === null ? {} : { CLIO_RELAY_SPOOL_DIR: expanded(install.spool, install.userHome) }),
    };
    const values = {
      ...common,
      // Without its last line's end, which the script adds.
      a_text: userUnit({ cluster, executable: `${install.root}/current/clio-relay`, environment }).trimEnd(),
      a_enable: install.enable ? "yes" : "no",
      a_scoped: install.allowLoginScoped ? "yes" : "no",
    };
    const answer = accepted(await remote.run(UNIT, { values, signal, withinMs: WITHIN_MS }), UNIT);
    return { written: answer.one("written") === "yes", enabled: answer.last("enabled") === "yes", linger: answer.last("linger") === "yes" };
  }
  await supervisor(remote, install, false);
  return { written: true, enabled: install.launcher === "cron", linger: null };
}

const expanded = (file: string, home: string): string => (file.startsWith("~/") ? `${home}${file.slice(1)}` : file);

/** Put the supervisor of a service without systemd in place, and start it where that is asked for. One that runs is left alone. @throws RelayError as installService */
export async function supervisor(remote: Remote, install: ServiceInstall, start: boolean): Promise<void> {
  const values = {
    a_home: install.home ?? "",
    a_cluster: install.cluster,
    a_spool: install.spool ?? "",
    a_launcher: install.launcher,
    a_start: start ? "yes" : "no",
    a_log: install.log,
    a_supervise: supervise.replace(/^#!.*\n/, ""),
  };
  accepted(await remote.run(SUPERVISOR, { values, signal: install.signal, withinMs: WITHIN_MS }), SUPERVISOR);
}

/** Start the supervisor that is in place; one that runs is left alone. @throws RelayError service_failed where there is none; as Remote.run */
export async function startSupervisor(
  remote: Remote,
  { cluster, home, signal }: { readonly cluster: string; readonly home: string | null; readonly signal: AbortSignal },
): Promise<void> {
  accepted(await remote.run(START, { values: { a_cluster: cluster, a_home: home ?? "" }, signal }), START);
}

/**
 * Stop a service, and take it away unless only the stop is asked for. One that is not there is no error. Its jobs go on.
 *
 * @returns what was stopped and removed: names of units and paths
 * @throws RelayError service_failed, wrong_login_node, state_conflict, and as Remote.run
 */
export async function removeService(
  remote: Remote,
  {
    cluster,
    home,
    signal,
    stopOnly,
  }: { readonly cluster: string; readonly home: string | null; readonly signal: AbortSignal; readonly stopOnly: boolean },
): Promise<{ readonly stopped: readonly string[]; readonly removed: readonly string[] }> {
  const values = { a_cluster: cluster, a_home: home ?? "", a_unit: unitName(cluster), a_stop_only: stopOnly ? "yes" : "no" };
  const answer = accepted(await remote.run(REMOVE, { values, signal, withinMs: WITHIN_MS }), REMOVE);
  return { stopped: answer.all("stopped"), removed: answer.all("removed") };
}
