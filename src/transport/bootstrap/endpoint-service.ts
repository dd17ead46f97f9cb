import { RelayError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { Remote } from "../script/remote.ts";
import { activateService, observe } from "../service/activate.ts";
import { installService, type ServiceInstall, supervisor } from "../service/install.ts";
import { type ServiceStatus, serviceStatus } from "../service/status.ts";
import { probeHost } from "./probe.ts";
import type { Whereabouts } from "./relay-command.ts";
import { refuseOwned, stopWorker } from "./worker.ts";

export interface EndpointServiceOptions extends Whereabouts {
  readonly cluster: string;
  readonly launcher: "systemd" | "setsid" | "cron";
  /** Start it with the machine. */
  readonly enable: boolean;
  /** Start it now; a worker that runs without it is drained first. */
  readonly start: boolean;
  /** Restart a service that runs already, so that a configuration that has changed counts. */
  readonly renew?: boolean;
  /** Go without linger: the service ends with the user's last session. */
  readonly allowLoginScoped: boolean;
  /** Gives the host the worker's configuration, once it is known that the service may be there. */
  readonly configure: () => Promise<{ readonly paths: { readonly log: string } }>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onLook?: (status: ServiceStatus) => void;
  readonly observeMs?: number;
}

export interface EndpointServiceReport {
  /** Whether the unit, or the supervisor, was written by this call. */
  readonly written: boolean;
  /** `in-progress`: the observation ran out of time, and the start goes on. */
  readonly outcome: "ready" | "in-progress" | "not-started";
  /** Whether a worker that ran without the service was drained. */
  readonly drained: boolean;
  readonly status: ServiceStatus;
  /** What a person has to know, one sentence each. */
  readonly notices: readonly string[];
}

/**
 * Give a cluster's worker a service, and start it. With systemd, linger is demanded before anything is written. The same again changes nothing.
 *
 * @throws RelayError linger_required, service_failed, relay_not_installed, queue_owned, wrong_login_node, host_unfit, state_conflict, and as Remote.run
 */
export async function installEndpointService(remote: Remote, options: EndpointServiceOptions): Promise<EndpointServiceReport> {
  const { cluster, home, signal, launcher } = options;
  const host = await probeHost(remote, { cluster, home, signal });
  if (host.installation.current === null) {
    throw new RelayError("relay_not_installed", `clio-relay is not installed on ${host.hostname}`, { hostname: host.hostname });
  }
  refuseOwned(host);
  const before = await serviceStatus(remote, options);
  if (before.launcher !== null && before.launcher !== launcher) {
    throw new RelayError(
      "state_conflict",
      `the worker of ${cluster} is kept by ${before.launcher} on that host`,
      { launcher: before.launcher },
      `clio-relay cluster remove-endpoint-service --cluster ${cluster}, and then this again`,
    );
  }
  const wanted = { ...options, root: host.storage.root, userHome: host.home };
  // A user who does not linger is refused before anything is written, the worker's configuration included. The manager keeps the log itself.
  const early = launcher === "systemd" ? await installService(remote, { ...wanted, log: "" }) : null;
  const place = { ...wanted, log: (await options.configure()).paths.log };
  const { written } = early ?? (await installService(remote, place));
  if (!options.start) return report(await serviceStatus(remote, options), written, "not-started", false);
  // A unit that runs is left alone; what runs besides holds the queue.
  const pid = host.worker?.alive === true ? host.worker.process.pid : null;
  const kept = pid !== null && (before.unit?.main_pid === pid || before.supervisor_pid !== null);
  const renew = kept && options.renew === true;
  if (pid !== null && !kept) await stopWorker(remote, options);
  const { outcome, status } =
    launcher === "systemd" ? await activate(remote, options, (written && kept) || renew) : await supervise(remote, place, renew);
  return report(status, written, outcome, pid !== null && !kept);
}

/** A unit that was changed while it runs is restarted, or the change would wait for the next failure. */
const activate = (remote: Remote, options: EndpointServiceOptions, changed: boolean) =>
  activateService(remote, { ...options, action: changed ? "restart" : "start" });

async function supervise(remote: Remote, place: ServiceInstall & EndpointServiceOptions, renew: boolean) {
  await supervisor(remote, place, true);
  // Its supervisor starts it again.
  if (renew) await stopWorker(remote, place);
  return observe(remote, place, (status) => status.state === "ready");
}

const report = (
  status: ServiceStatus,
  written: boolean,
  outcome: EndpointServiceReport["outcome"],
  drained: boolean,
): EndpointServiceReport => ({ written, outcome, drained, status, notices: noticesOf(status) });

function noticesOf({ persistence, operator_action, launcher, hostname }: ServiceStatus): string[] {
  if (launcher === "cron" && persistence === "until-reboot") {
    return [`no cron runs on ${hostname}: the worker is there until ${hostname} boots, and nobody looks after its supervisor`];
  }
  if (persistence === "login-scoped") {
    return [
      `diagnostic only: the user does not linger on ${hostname}, so the worker ends with the user's last session and is not there after a boot: ${operator_action}`,
    ];
  }
  if (launcher === "setsid") {
    return [
      `the supervisor is a process of the user's: it is not there after ${hostname} boots, and a site that ends what a logout leaves ends it (logind.conf(5), KillUserProcesses)`,
    ];
  }
  if (launcher === "cron")
    return [
      ...(persistence === "unproven" ? [`whether a cron runs on ${hostname} cannot be seen: its processes are hidden`] : []),
      `cron looks after the worker on ${hostname} every five minutes; a site may have cron on one login node only`,
    ];
  return persistence === "until-reboot" ? [`the service is not enabled: it is not there after ${hostname} boots`] : [];
}
