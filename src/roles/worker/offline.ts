import { LIMITS } from "../../domain/limits.ts";
import { systemClock } from "../../lib/clock.ts";
import { newId } from "../../lib/ids.ts";
import { self } from "../../lib/process-identity.ts";
import { acquireOwnership } from "../../queue/ownership.ts";
import { openQueue } from "../../queue/sqlite/open.ts";
import type { AuditReport, QueueStore, RepairReport } from "../../queue/store.ts";

/**
 * Audit a queue that no worker owns.
 *
 * @throws RelayError queue_owned while a worker runs, queue_* when the file cannot be used
 */
export const auditOffline = (coreDir: string): Promise<AuditReport> => withQueue(coreDir, (store) => store.audit({ deep: true }));

/** Repair a queue that no worker owns; refused like auditOffline. */
export const repairOffline = (coreDir: string): Promise<RepairReport> => withQueue(coreDir, (store) => store.repair({ deep: true }));

async function withQueue<T>(coreDir: string, work: (store: QueueStore) => Promise<T>): Promise<T> {
  const ownership = acquireOwnership(coreDir, {
    identity: self(),
    endpointId: newId("endpoint"),
    takeOver: false,
    confirmHostDead: false,
    clock: systemClock,
  });
  try {
    const store = await openQueue(coreDir, { clock: systemClock, activeJobsMax: LIMITS.activeJobs, leaseSeconds: LIMITS.leaseSeconds });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  } finally {
    ownership.release();
  }
}
