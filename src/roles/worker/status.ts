import type { Endpoint } from "../../domain/endpoint.ts";
import type { WorkerStatus } from "../../domain/views.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import type { WorkerContext } from "./context.ts";

/** What worker status shows, as of now. */
export async function workerStatus(
  context: WorkerContext,
  endpoint: Endpoint,
  laneLastError: string | null,
  { metAt, frp }: { readonly metAt: WorkerStatus["met_at"]; readonly frp: WorkerStatus["frp"] },
): Promise<WorkerStatus> {
  const stats = await context.store.stats();
  return {
    cluster: context.cluster,
    endpoint_id: endpoint.endpoint_id,
    process: endpoint.process,
    version: endpoint.version,
    registered_at: endpoint.registered_at,
    last_seen_at: timestamp(context.clock),
    capacity: endpoint.capacity,
    active_leases_by_kind: { ...stats.leases_by_kind },
    active_leases_by_lane: { ...stats.leases_by_lane },
    queued_by_kind: { ...stats.queued_by_kind },
    quarantined: stats.quarantined,
    lane_last_error: laneLastError,
    spool_dir: context.spoolDir,
    core_dir: context.coreDir,
    met_at: metAt ?? null,
    frp: frp ?? null,
  };
}
