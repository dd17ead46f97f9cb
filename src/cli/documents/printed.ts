import * as v from "valibot";
import { LinkList, LinkStatus } from "../../api/desktop/link-views.ts";
import { ListenerStatus } from "../../api/desktop/listener-views.ts";
import { ClusterList } from "../../api/desktop/views.ts";
import type { Operation } from "../../api/operation.ts";
import { workerOperations } from "../../api/worker-app.ts";
import type { WorkerServices } from "../../api/worker-services.ts";
import { ClusterEntry } from "../../config/cluster-entry.ts";
import { Endpoint } from "../../domain/endpoint.ts";
import { Event } from "../../domain/event.ts";
import { LinkKeys, PairingCodeMade, Revoked, Rotation } from "../../domain/link-keys.ts";
import { LogChunk } from "../../domain/log.ts";
import { Progress } from "../../domain/progress.ts";
import { TaskEvent } from "../../domain/task.ts";
import { JobStatus, JobWaitResult } from "../../domain/views.ts";
import { WorkerConfigured } from "../../domain/worker-configuration.ts";
import { BootstrapReport } from "../../transport/bootstrap/report.ts";
import { ServiceStatus } from "../../transport/service/status.ts";
import { AgentSkill, McpConfiguration } from "./agent.ts";
import * as clusters from "./clusters.ts";
import * as own from "./installation.ts";
import * as jobs from "./jobs.ts";
import * as servers from "./remote-mcp.ts";

/** What a verb prints with `--json`. */
export interface Printed {
  /** One document; one object a line; either, as an option says; nothing. */
  readonly shape: "document" | "lines" | "either" | "nothing";
  /** What the schema is called where schemas are listed. */
  readonly name: string;
  readonly schema: v.GenericSchema;
}

const document = (name: string, schema: v.GenericSchema): Printed => ({ shape: "document", name, schema });
const lines = (name: string, schema: v.GenericSchema): Printed => ({ shape: "lines", name, schema });
const NOTHING: Printed = { shape: "nothing", name: "nothing", schema: v.never() };

/** Describing operations needs none of what their handlers need. */
const OPERATIONS = new Map(workerOperations({} as WorkerServices).map((op): [string, Operation] => [op.id, op]));

/** What an operation of a worker answers with. @param id of the operation, as in docs/openapi.json */
function answer(name: string, id: string): Printed {
  const op = OPERATIONS.get(id);
  if (op?.answer.kind !== "json") throw new Error(`no operation ${id} answers with JSON`);
  return document(name, op.answer.schema);
}

/**
 * What each verb prints with `--json`, by its path in the table of commands. A verb that is not here fails the tests: docs/cli.md names the schema, docs/cli-schemas.json has it, and what the verb
 * prints is held against it.
 */
export const PRINTED: Readonly<Record<string, Printed>> = {
  init: document("Initialized", own.Initialized),
  connect: document("LinkStatus", LinkStatus),
  disconnect: document("LinkStatus", LinkStatus),
  "install-frp": document("FrpInstalled", own.FrpInstalled),
  "mcp-server": NOTHING,
  "mcp-call": document("JobSubmitted", jobs.JobSubmitted),
  "jarvis-mcp-call": document("JobSubmitted", jobs.JobSubmitted),
  "jarvis-mcp-refresh": document("RemoteMcpRefreshed", servers.RemoteMcpRefreshed),
  "remote-mcp register": document("RemoteMcpRegistered", servers.RemoteMcpRegistered),
  "remote-mcp refresh": document("RemoteMcpRefreshed", servers.RemoteMcpRefreshed),
  "remote-mcp list": document("RemoteMcpServers", servers.RemoteMcpServers),
  "remote-mcp reload": document("RemoteMcpCatalogue", servers.RemoteMcpCatalogue),
  "remote-mcp unregister": document("RemoteMcpUnregistered", servers.RemoteMcpUnregistered),
  "agent skill": document("AgentSkill", AgentSkill),
  "agent render-mcp-config": document("McpConfiguration", McpConfiguration),
  completion: document("CompletionScript", own.CompletionScript),
  version: document("Version", own.Version),
  "job submit": document("JobSubmitted", jobs.JobSubmitted),
  "job submit-pipeline": document("JobSubmitted", jobs.JobSubmitted),
  "agent run": document("JobSubmitted", jobs.JobSubmitted),
  "job watch": lines("Event", Event),
  "job read-log": { shape: "either", name: "LogChunk", schema: LogChunk },
  "job wait": document("JobWaitResult", JobWaitResult),
  "job status": document("JobStatus", JobStatus),
  "job monitor": answer("JobMonitor", "monitorJob"),
  "job list": answer("JobList", "listRecentJobs"),
  "job cancel": document("JobCanceled", jobs.JobCanceled),
  "job attempts": answer("AttemptPage", "listAttempts"),
  "job progress": answer("ProgressPage", "listProgress"),
  "job record-progress": document("Progress", Progress),
  "job tasks": answer("TaskPage", "listTasks"),
  "job task-events": answer("TaskEventPage", "listTaskEvents"),
  "job record-task-event": document("TaskEvent", TaskEvent),
  "job used-artifacts": answer("UsedArtifactPage", "listUsedArtifacts"),
  "job used-by": answer("UsedByPage", "listUsedBy"),
  "job provenance": document("JobProvenance", jobs.JobProvenance),
  "job list-artifacts": answer("ArtifactPage", "listArtifacts"),
  "job fetch": document("JobFetched", jobs.JobFetched),
  "job read-artifact": document("ArtifactRead", jobs.ArtifactRead),
  "queue list": answer("QueueList", "listQueue"),
  "queue audit": answer("QueueAudit", "auditQueue"),
  "queue repair": answer("QueueRepair", "repairQueue"),
  "worker run": lines("Endpoint", Endpoint),
  "worker start": document("WorkerStarted", own.WorkerStarted),
  "worker stop": document("WorkerStopped", own.WorkerStopped),
  "worker status": answer("WorkerList", "listWorkers"),
  "worker bridge": NOTHING,
  "worker configure": document("WorkerConfigured", WorkerConfigured),
  "worker pair": document("PairingCodeMade", PairingCodeMade),
  "worker keys list": document("LinkKeys", LinkKeys),
  "worker keys revoke": document("Revoked", Revoked),
  "worker keys rotate": document("Rotation", Rotation),
  "desktop start": document("DesktopStarted", own.DesktopStarted),
  "desktop stop": document("DesktopStopped", own.DesktopStopped),
  "desktop status": document("DesktopWithLinks", own.DesktopWithLinks),
  "desktop logs": lines("LogLine", own.LogLine),
  "desktop run": NOTHING,
  "api start": document("ListenerStatus", ListenerStatus),
  "api stop": document("ListenerStatus", ListenerStatus),
  "api status": document("ListenerStatus", ListenerStatus),
  "api rotate-token": document("ListenerStatus", ListenerStatus),
  "cluster add": document("ClusterEntry", ClusterEntry),
  "cluster list": document("ClusterList", ClusterList),
  "cluster show": document("ClusterShown", clusters.ClusterShown),
  "cluster pin-target": document("ClusterEntry", ClusterEntry),
  "cluster probe": document("ClusterProbe", clusters.ClusterProbe),
  "cluster bootstrap": document("BootstrapReport", BootstrapReport),
  "cluster install-endpoint-service": document("ServiceInstalled", clusters.ServiceInstalled),
  "cluster restart-endpoint-service": document("ServiceRestarted", clusters.ServiceRestarted),
  "cluster remove-endpoint-service": document("ServiceRemovedFrom", clusters.ServiceRemovedFrom),
  "cluster endpoint-service-status": document("ServiceStatus", ServiceStatus),
  "cluster rollback": document("ClusterRolledBack", clusters.ClusterRolledBack),
  "cluster uninstall": document("ClusterUninstalled", clusters.ClusterUninstalled),
  "cluster remove": document("ClusterEntry", ClusterEntry),
  "scheduler status": answer("SchedulerObserved", "observeSchedulerJob"),
  "scheduler cancel": answer("SchedulerCanceled", "cancelSchedulerJob"),
  "link list": document("LinkList", LinkList),
  "relay-host serve": document("Listening", own.Listening),
  "relay-host render-frps-config": document("FrpConfiguration", own.FrpConfiguration),
  "relay-host render-frpc-config": document("FrpConfiguration", own.FrpConfiguration),
  "relay-host render-frpc-visitor-config": document("FrpConfiguration", own.FrpConfiguration),
  "relay-host test-http-transport": document("TransportTest", own.TransportTest),
  "relay-host test-ssh-transport": document("TransportTest", own.TransportTest),
  "relay-host test-frpc-connection": document("TransportTest", own.TransportTest),
  "relay-host test-direct-transport": document("TransportTest", own.TransportTest),
  "relay-host service install": document("RelayHostInstalled", own.RelayHostInstalled),
  "relay-host service uninstall": document("RelayHostUninstalled", own.RelayHostUninstalled),
  "emit progress": document("ProgressReported", jobs.ProgressReported),
  "emit task-event": document("TaskEventReported", jobs.TaskEventReported),
};
