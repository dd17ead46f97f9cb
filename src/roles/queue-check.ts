import type { ClusterClient } from "../api/client.ts";
import { isRelayError } from "../domain/errors.ts";
import type { AuditReport, RepairReport } from "../queue/store.ts";

/** Audit a queue: through its worker where one runs, else on the files of this machine. */
export const auditQueue = (cluster: ClusterClient, coreDir: string): Promise<AuditReport> =>
  throughWorkerOr(
    () => cluster.audit(),
    async () => (await import("./worker/offline.ts")).auditOffline(coreDir),
  );

/** Repair a queue, in the same way. */
export const repairQueue = (cluster: ClusterClient, coreDir: string): Promise<RepairReport> =>
  throughWorkerOr(
    () => cluster.repair(),
    async () => (await import("./worker/offline.ts")).repairOffline(coreDir),
  );

async function throughWorkerOr<T>(online: () => Promise<T>, offline: () => Promise<T>): Promise<T> {
  try {
    return await online();
  } catch (error) {
    if (!isRelayError(error, "worker_not_running")) throw error;
    // A worker that starts meanwhile owns the queue, and the files refuse with its name.
    return offline();
  }
}
