import type { ProcessIdentity } from "../../domain/attempt.ts";
import type { Capacity, Endpoint } from "../../domain/endpoint.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Lease } from "../../domain/lease.ts";
import type { Page } from "../../domain/page.ts";
import type { PageRequest } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { renewLeases } from "./leases.ts";
import { pageOf } from "./pages.ts";
import { parsed, storable } from "./record-json.ts";

/** Records of endpoints that are kept; older ones that hold nothing are forgotten. */
const KEPT = 1_000;

type EndpointRow = Omit<Endpoint, "process" | "capacity"> & {
  readonly sequence: number;
  readonly process: string;
  readonly capacity: string;
};

/** state_conflict when an endpoint of that id is on record. */
export function registerEndpoint(w: Writing, endpoint: Endpoint): void {
  if (w.sql.get("SELECT 1 FROM endpoints WHERE endpoint_id = ?", endpoint.endpoint_id) !== null) {
    throw new RelayError("state_conflict", `endpoint ${endpoint.endpoint_id} is registered already`, { endpoint_id: endpoint.endpoint_id });
  }
  const { lastInsertRowid } = w.sql.run(
    `INSERT INTO endpoints (endpoint_id, role, cluster, process, version, capacity, registered_at, last_seen_at, stopped_at, lane_last_error)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    endpoint.endpoint_id,
    endpoint.role,
    endpoint.cluster,
    JSON.stringify(endpoint.process),
    storable(endpoint.version),
    JSON.stringify(endpoint.capacity),
    endpoint.registered_at,
    endpoint.last_seen_at,
    endpoint.stopped_at,
    endpoint.lane_last_error === null ? null : storable(endpoint.lane_last_error),
  );
  w.sql.run("DELETE FROM endpoints WHERE sequence <= ? AND endpoint_id NOT IN (SELECT endpoint_id FROM leases)", lastInsertRowid - KEPT);
  w.touch("queue");
}

/** not_found for an unknown endpoint; state_conflict for one that has stopped. */
export function heartbeat(w: Writing, endpointId: string, laneLastError: string | null, leaseMs: number): Lease[] {
  const { changes } = w.sql.run(
    "UPDATE endpoints SET last_seen_at = ?, lane_last_error = ? WHERE endpoint_id = ? AND stopped_at IS NULL",
    w.now,
    laneLastError === null ? null : storable(laneLastError, 2_000),
    endpointId,
  );
  if (changes === 0) {
    requireEndpoint(w, endpointId);
    throw new RelayError("state_conflict", `endpoint ${endpointId} has stopped`, { endpoint_id: endpointId });
  }
  return renewLeases(w, endpointId, leaseMs);
}

/** Stopping twice changes nothing. */
export function stopEndpoint(w: Writing, endpointId: string): void {
  requireEndpoint(w, endpointId);
  w.sql.run("UPDATE endpoints SET stopped_at = ?1, last_seen_at = ?1 WHERE endpoint_id = ?2 AND stopped_at IS NULL", w.now, endpointId);
}

function requireEndpoint(r: Reading, endpointId: string): void {
  if (r.sql.get("SELECT 1 FROM endpoints WHERE endpoint_id = ?", endpointId) === null) {
    throw new RelayError("not_found", `there is no endpoint ${endpointId}`, { endpoint_id: endpointId });
  }
}

/** In the order of registration. */
export function endpoints(r: Reading, page: PageRequest): Page<Endpoint> {
  const rows = r.sql.all<EndpointRow>("SELECT * FROM endpoints WHERE sequence >= ? ORDER BY sequence LIMIT ?", page.cursor, page.limit);
  const total = r.sql.get<{ n: number }>("SELECT count(*) AS n FROM endpoints")?.n ?? 0;
  const toEndpoint = ({ sequence: _sequence, ...row }: EndpointRow): Endpoint => ({
    ...row,
    process: parsed<ProcessIdentity>(row.process, row.endpoint_id),
    capacity: parsed<Capacity>(row.capacity, row.endpoint_id),
  });
  return pageOf(rows, (row) => row.sequence, toEndpoint, page, total);
}
