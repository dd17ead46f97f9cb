import { RelayError } from "../../domain/errors.ts";
import type { JobKind, Lane } from "../../domain/job.ts";
import { JOB_KINDS } from "../../domain/job.ts";
import type { Lease } from "../../domain/lease.ts";
import { newId } from "../../lib/ids.ts";
import type { Fence, QueueStats } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { openHead } from "./attempt-rows.ts";
import { JobEdit } from "./job-edit.ts";

const SELECT_LEASE = `SELECT leases.lease_id, jobs.job_id, leases.endpoint_id, leases.attempt, leases.kind, leases.lane, leases.acquired_at,
  leases.expires_at FROM leases CROSS JOIN jobs ON jobs.sequence = leases.job`;

/** The attempt has ended: its lease goes with it. */
export function dropLease(w: Writing, job: number): void {
  w.sql.run("DELETE FROM leases WHERE job = ?", job);
}

/** Give an open attempt to another endpoint. A lease that is missing is made. */
export function takeOverLease(w: Writing, fence: Fence, endpointId: string, leaseMs: number): Lease {
  if (w.sql.get("SELECT 1 FROM endpoints WHERE endpoint_id = ?", endpointId) === null) {
    throw new RelayError("not_found", `there is no endpoint ${endpointId}`, { endpoint_id: endpointId });
  }
  const { row } = openHead(w, fence);
  w.sql.run(
    `INSERT INTO leases (job, lease_id, endpoint_id, attempt, kind, lane, acquired_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (job) DO UPDATE SET endpoint_id = excluded.endpoint_id, attempt = excluded.attempt, expires_at = excluded.expires_at`,
    row.sequence,
    newId("lease"),
    endpointId,
    fence.attempt,
    row.kind,
    row.lane,
    w.now,
    w.time.in(leaseMs),
  );
  const edit = new JobEdit(w, row);
  row.leased_by = endpointId;
  edit.save();
  const lease = w.sql.get<Lease>(`${SELECT_LEASE} WHERE leases.job = ?`, row.sequence);
  if (lease === null) throw new RelayError("internal_error", "the lease that was just written is not there", { ...fence });
  return lease;
}

/** Move the expiry of an endpoint's leases on, and return them in the order of submission. */
export function renewLeases(w: Writing, endpointId: string, leaseMs: number): Lease[] {
  w.sql.run("UPDATE leases SET expires_at = ? WHERE endpoint_id = ?", w.time.in(leaseMs), endpointId);
  return w.sql.all<Lease>(`${SELECT_LEASE} WHERE leases.endpoint_id = ? ORDER BY leases.job`, endpointId);
}

export function stats(r: Reading): QueueStats {
  const byKind: Partial<Record<JobKind, number>> = {};
  const byLane: Partial<Record<Lane, number>> = {};
  for (const { kind, lane, n } of r.sql.all<{ kind: JobKind; lane: Lane; n: number }>(
    "SELECT kind, lane, count(*) AS n FROM leases GROUP BY kind, lane",
  )) {
    byKind[kind] = (byKind[kind] ?? 0) + n;
    byLane[lane] = (byLane[lane] ?? 0) + n;
  }
  const queued = JOB_KINDS.filter((kind) => r.counts.queued(kind) > 0).map((kind) => [kind, r.counts.queued(kind)] as const);
  return {
    queued_by_kind: Object.fromEntries(queued),
    leases_by_kind: byKind,
    leases_by_lane: byLane,
    active: r.counts.active,
    quarantined: r.sql.get<{ n: number }>("SELECT count(*) AS n FROM jobs WHERE quarantine IS NOT NULL")?.n ?? 0,
  };
}
