import * as v from "valibot";
import { ClusterEntry } from "../../config/cluster-entry.ts";
import { Count, Id, looseText, Sha256, text } from "../../domain/primitives.ts";
import { HostProbe } from "../../transport/bootstrap/probe.ts";
import { ServiceStatus } from "../../transport/service/status.ts";

const word = looseText(1_024);
const Paths = v.array(looseText(4_096));
const Supervisor = v.nullable(v.picklist(["systemd", "setsid", "cron"]));

const shown = { route_revision: Sha256 };
const [local, ssh, relay, frp] = ClusterEntry.options;
/** An entry with the digest of what decides where its requests go. */
export const ClusterShown = v.variant("mode", [
  v.strictObject({ ...local.entries, ...shown }),
  v.strictObject({ ...ssh.entries, ...shown }),
  v.strictObject({ ...relay.entries, ...shown }),
  v.strictObject({ ...frp.entries, ...shown }),
]);

/** What was found on a cluster's host. A host that cannot be reached is an answer, too. */
export const ClusterProbe = v.strictObject({
  schema_version: v.literal("clio-relay.cluster-probe.v1"),
  cluster: Id,
  ssh_host: looseText(512),
  ssh_reachable: v.boolean(),
  state: v.picklist(["ready", "relay_executable_missing", "relay_not_installed", "ssh_unreachable"]),
  detail: looseText(8_192),
  /** The command that puts it right; null where nothing is to be. */
  repair: v.nullable(looseText(8_192)),
  relay_executable: v.nullable(v.strictObject({ path: text(4_096), present: v.boolean() })),
  host: v.nullable(HostProbe),
});

export const ClusterRolledBack = v.strictObject({
  schema_version: v.literal("clio-relay.cluster-rollback.v1"),
  cluster: Id,
  /** SHA-256 of the executables. */
  before: v.nullable(Sha256),
  now: Sha256,
  version: text(128),
  worker: v.strictObject({ state: v.picklist(["kept", "started", "replaced"]), pid: v.nullable(Count), supervised_by: Supervisor }),
});

const ServiceRemoved = { stopped: v.array(word), removed: Paths };
export const ClusterUninstalled = v.strictObject({
  schema_version: v.literal("clio-relay.cluster-uninstall.v1"),
  cluster: Id,
  service: v.strictObject(ServiceRemoved),
  worker: v.picklist(["stopped", "not_running"]),
  removed: Paths,
  /** Versions that stay because something of them runs. */
  running: Paths,
  remains: v.array(v.strictObject({ path: looseText(4_096), kib: Count })),
});

export const ServiceRemovedFrom = v.strictObject({
  schema_version: v.literal("clio-relay.endpoint-service-remove.v1"),
  cluster: Id,
  ...ServiceRemoved,
});

export const ServiceInstalled = v.strictObject({
  schema_version: v.literal("clio-relay.endpoint-service-install.v1"),
  cluster: Id,
  launcher: v.picklist(["systemd", "setsid", "cron"]),
  /** Whether something was written, or all was as it had to be. */
  written: v.boolean(),
  outcome: v.picklist(["ready", "in-progress", "not-started"]),
  /** Whether a worker that ran without the service was drained for it. */
  drained: v.boolean(),
  status: ServiceStatus,
  notices: v.array(word),
});

export const ServiceRestarted = v.strictObject({
  schema_version: v.literal("clio-relay.endpoint-service-restart.v1"),
  cluster: Id,
  outcome: v.picklist(["ready", "in-progress"]),
  asked: v.picklist(["enqueued", "adopted", "nothing"]),
  status: ServiceStatus,
});
