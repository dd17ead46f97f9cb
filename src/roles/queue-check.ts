import type { ClusterClient } from "../api/client.ts";
import { isRelayError } from "../domain/errors.ts";
import type { AuditReport, RepairReport } from "../queue/store.ts";

/** Audit a queue: through its worker where one runs, else on its files. @param coreDir where these are; null where that is another machine */
export const auditQueue = (cluster: ClusterClient, coreDir: string | null): Promise<AuditReport> =>
  throughWorkerOr(() => cluster.audit(), coreDir === null ? null : async () => (await import("./worker/offline.ts")).auditOffline(coreDir));

/** Repair a queue, in the same way. */
export const repairQueue = (cluster: ClusterClient, coreDir: string | null): Promise<RepairReport> =>
  throughWorkerOr(
    () => cluster.repair(),
    coreDir === null ? null : async () => (await import("./worker/offline.ts")).repairOffline(coreDir),
  );

/** The newest schema of a queue that this program knows. */
export const newestSchema = async (): Promise<number> => (await import("../queue/sqlite/migrate.ts")).QUEUE_SCHEMA;

async function throughWorkerOr<T>(online: () => Promise<T>, offline: (() => Promise<T>) | null): Promise<T> {
  try {
    return await online();
  } catch (error) {
    if (offline === null || !isRelayError(error, "worker_not_running")) throw error;
    // A worker that starts meanwhile owns the queue, and the files refuse with its name.
    return offline();
  }
}
