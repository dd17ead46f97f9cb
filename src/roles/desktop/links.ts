import type { LinkStatus } from "../../api/desktop-views.ts";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { nobodyListens, probe } from "../probe.ts";

const WITHIN_MS = 2_000;

/** Ask each cluster's worker for a sign of life, all at once; the slowest costs two seconds. */
export const linkStates = (clusters: readonly ClusterEntry[], socketOf: (cluster: string) => string): Promise<LinkStatus[]> =>
  Promise.all(clusters.map((entry) => linkState(entry, socketOf(entry.name))));

async function linkState(entry: ClusterEntry, socket: string): Promise<LinkStatus> {
  const base = { cluster: entry.name, mode: entry.mode, round_trip_ms: null, worker_version: null, detail: null };
  try {
    const { roundTripMs, version } = await probe(socket, WITHIN_MS);
    return { ...base, state: "up", round_trip_ms: Math.round(roundTripMs * 1_000) / 1_000, worker_version: version };
  } catch (error) {
    if (nobodyListens(error)) return { ...base, state: "down", detail: "no worker is running" };
    return { ...base, state: "degraded", detail: `the worker did not answer within ${WITHIN_MS} ms` };
  }
}
