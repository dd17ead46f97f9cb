import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { newId } from "../../lib/ids.ts";
import { self } from "../../lib/system/process-identity.ts";
import { systemClock } from "../../lib/waiting/clock.ts";
import { hasQueue, type OwnedQueue, openOwnedQueue } from "../../queue/owned-queue.ts";
import type { AuditReport, RepairReport } from "../../queue/store.ts";

/**
 * Audit a queue that no worker owns.
 *
 * @throws RelayError not_found where there is none, queue_owned while a worker runs, queue_* when the file cannot be used
 */
export const auditOffline = (coreDir: string): Promise<AuditReport> =>
  withQueue(coreDir, false, ({ store }) => store.audit({ deep: true }));

/**
 * Repair a queue that no worker owns. A damaged file is made anew, and a write-ahead log that is gone is done without; both are among what was
 * repaired. Refused like auditOffline otherwise.
 */
export const repairOffline = (coreDir: string): Promise<RepairReport> =>
  withQueue(coreDir, true, async ({ store, repaired }) => {
    const report = await store.repair({ deep: true });
    return { ...report, repaired: [...repaired, ...report.repaired] };
  });

/** Whoever looks at a queue makes none. */
function refuseNone(coreDir: string): void {
  if (hasQueue(coreDir)) return;
  throw new RelayError("not_found", `there is no queue in ${coreDir}`, { directory: coreDir }, "the first start of its worker makes it");
}

async function withQueue<T>(coreDir: string, repair: boolean, work: (queue: OwnedQueue) => Promise<T>): Promise<T> {
  refuseNone(coreDir);
  const queue = openOwnedQueue(coreDir, {
    ownership: { identity: self(), endpointId: newId("endpoint"), takeOver: false, confirmHostDead: false, clock: systemClock },
    queue: { clock: systemClock, activeJobsMax: LIMITS.activeJobs, leaseSeconds: LIMITS.leaseSeconds },
    repair,
  });
  try {
    return await work(queue);
  } finally {
    await queue.close();
  }
}
