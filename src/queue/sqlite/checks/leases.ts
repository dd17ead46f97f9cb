import type { JobState } from "../../../domain/job.ts";
import { newId } from "../../../lib/ids.ts";
import type { Writing } from "../access.ts";
import type { Damage, JobCheck } from "./damage.ts";

interface JobLease {
  readonly job: number;
  readonly job_id: string;
  readonly state: JobState;
  readonly lease_id: string | null;
  readonly agrees: number;
}

const isOut = (state: JobState): boolean => state === "leased" || state === "running";

/** A leased or running job has exactly one lease, which says what the job's row says; no other job has one. */
export const leases: JobCheck = (r, { from, to }) => {
  const rows = r.sql.all<JobLease>(
    `SELECT jobs.sequence AS job, jobs.job_id, jobs.state, leases.lease_id,
       coalesce(leases.attempt = jobs.attempts AND leases.endpoint_id = jobs.leased_by AND leases.kind = jobs.kind AND leases.lane = jobs.lane, 0) AS agrees
     FROM jobs LEFT JOIN leases ON leases.job = jobs.sequence
     WHERE jobs.sequence BETWEEN ? AND ? AND (leases.lease_id IS NOT NULL OR jobs.state IN ('leased', 'running'))`,
    from,
    to,
  );
  return rows.flatMap(({ job, job_id, state, lease_id, agrees }): Damage[] => {
    const damage = (detail: string): Damage[] => [{ check: "lease", subject: job_id, detail, mend: (w) => followJob(w, job) }];
    if (lease_id === null) return damage(`it is ${state} and has no lease`);
    if (!isOut(state)) return damage(`it is ${state} and has a lease`);
    return agrees === 1 ? [] : damage("its lease is of another attempt, endpoint, kind or lane");
  });
};

/** Make the lease anew from the job's row. An expiry in the past is as good as any: the next heartbeat moves it on. */
function followJob(w: Writing, job: number): void {
  w.sql.run("DELETE FROM leases WHERE job = ?", job);
  w.sql.run(
    `INSERT INTO leases (job, lease_id, endpoint_id, attempt, kind, lane, acquired_at, expires_at)
     SELECT sequence, ?2, leased_by, attempts, kind, lane, updated_at, ?3 FROM jobs WHERE sequence = ?1 AND state IN ('leased', 'running')`,
    job,
    newId("lease"),
    w.time.in(0),
  );
  w.touch("queue");
}
