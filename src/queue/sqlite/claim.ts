import { type Capacity, kindSlotsOf, slotsOf } from "../../domain/endpoint.ts";
import { RelayError } from "../../domain/errors.ts";
import { JOB_KINDS, type Job, LANES } from "../../domain/job.ts";
import { LAST_DELAY_SECONDS } from "../../domain/retry.ts";
import { newId } from "../../lib/ids.ts";
import type { Claim } from "../store.ts";
import { inSavepoint, type Reading, type Writing } from "./access.ts";
import { JobEdit } from "./job-edit.ts";
import { isReady, lostId, rebuildJobIndexes } from "./job-index.ts";
import { COLUMNS, checkJob, type JobRow } from "./job-rows.ts";
import { setAside } from "./quarantine.ts";
import { openSegments } from "./segments.ts";
import { isConstraint, isWrongIndex } from "./sqlite-failure.ts";

/**
 * The sequence of the next eligible job in one statement. `held` has at most one row per lane and kind; for each pair with room one look-up in jobs_ready finds the
 * head of its queue; the lowest of these heads is the next job. Nothing depends on how many jobs wait.
 *
 * Parameters: the slots of each lane in the order of LANES, then the bound of each kind in the order of JOB_KINDS. The bound of a kind is about the
 * worker's host, so that the scheduler's lane neither takes of it nor is held up by it.
 */
export const NEXT_JOB = `
  WITH held AS MATERIALIZED (SELECT lane, kind, count(*) AS n FROM leases GROUP BY lane, kind),
       lanes (lane, slots) AS (VALUES ${LANES.map((lane, index) => `('${lane}', ?${index + 1})`).join(", ")}),
       kinds (kind, slots) AS (VALUES ${JOB_KINDS.map((kind, index) => `('${kind}', ?${LANES.length + index + 1})`).join(", ")})
  SELECT min((
    SELECT waiting.sequence FROM jobs AS waiting
    WHERE waiting.lane = lanes.lane AND waiting.kind = kinds.kind AND waiting.ready = 1
    ORDER BY waiting.sequence LIMIT 1)) AS sequence
  FROM lanes CROSS JOIN kinds
  WHERE coalesce((SELECT sum(n) FROM held WHERE held.lane = lanes.lane), 0) < lanes.slots
    AND (lanes.lane = 'scheduler'
      OR coalesce((SELECT sum(n) FROM held WHERE held.kind = kinds.kind AND held.lane <> 'scheduler'), 0) < kinds.slots)`;

export const JOB_OF_SEQUENCE = `SELECT ${COLUMNS.all} FROM jobs WHERE sequence = ?`;

/**
 * Claim the next eligible job. What cannot be claimed is kept out on the way: records that cannot be read, jobs that are not found by their id, and jobs
 * in whose way other rows stand. None of them may hold a slot, or the head of its lane, for ever.
 *
 * @throws RelayError queue_corrupt when the index of waiting jobs leads nowhere, and does so too after it was built anew
 */
export function claim(w: Writing, endpointId: string, capacity: Capacity, leaseMs: number): Claim | null {
  refuseUnlessServing(w, endpointId);
  const rebuild = onceRebuilt(w);
  readyDelayed(w, rebuild);
  for (;;) {
    const sequence = nextSequence(w, capacity);
    if (sequence === null) return null;
    const row = w.sql.get<JobRow>(JOB_OF_SEQUENCE, sequence);
    if (row === null || !isReady(row)) {
      rebuild();
      continue;
    }
    try {
      const claimed = lostId(w, row) ?? claimRow(w, row, endpointId, leaseMs);
      if (typeof claimed !== "string") return claimed;
      setAside(w, row, claimed);
    } catch (error) {
      if (!isWrongIndex(error)) throw error;
      rebuild();
    }
  }
}

function nextSequence(w: Writing, capacity: Capacity): number | null {
  const laneSlots = LANES.map((lane) => slotsOf(capacity, lane));
  const kindSlots = JOB_KINDS.map((kind) => kindSlotsOf(capacity, kind));
  const next = w.sql.get<{ sequence: number | null }>(NEXT_JOB, ...laneSlots, ...kindSlots);
  return next?.sequence ?? null;
}

/** Builds the indexes of jobs anew, because they lead to a job that does not wait or to none: at most once, so that a claim ends. */
function onceRebuilt(w: Writing): () => void {
  let rebuilt = false;
  return () => {
    if (rebuilt) throw new RelayError("queue_corrupt", "the indexes of jobs lead nowhere, although they were built anew");
    rebuilt = true;
    rebuildJobIndexes(w);
  };
}

/** The claim, or why the job cannot be claimed. */
function claimRow(w: Writing, row: JobRow, endpointId: string, leaseMs: number): Claim | string {
  const checked = checkJob(row);
  if ("unreadable" in checked) return checked.unreadable;
  try {
    return inSavepoint(w, () => lease(w, { ...row }, checked.job, endpointId, leaseMs));
  } catch (error) {
    // A row that must not be there: an attempt, a lease, a segment or an event of that number.
    if (!isConstraint(error)) throw error;
    return `it cannot be claimed: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function refuseUnlessServing(w: Writing, endpointId: string): void {
  const endpoint = w.sql.get<{ stopped_at: string | null }>("SELECT stopped_at FROM endpoints WHERE endpoint_id = ?", endpointId);
  if (endpoint === null) throw new RelayError("not_found", `there is no endpoint ${endpointId}`, { endpoint_id: endpointId });
  if (endpoint.stopped_at !== null) {
    throw new RelayError("state_conflict", `endpoint ${endpointId} has stopped and claims nothing`, { endpoint_id: endpointId });
  }
}

/** Delayed retries whose time has come join the ready ones. */
function readyDelayed(w: Writing, rebuild: () => void): void {
  const due = () =>
    w.sql.run(
      "UPDATE jobs SET not_before = NULL, ready = (quarantine IS NULL) WHERE not_before IS NOT NULL AND not_before <= ?",
      w.time.in(0),
    );
  try {
    inSavepoint(w, due);
  } catch (error) {
    // The index of delayed jobs has led to one that does not wait.
    if (!isConstraint(error) && !isWrongIndex(error)) throw error;
    rebuild();
    due();
  }
}

/** No retry is delayed for longer than the longest delay, whatever the clocks did since it was written. Run once, when the queue is opened. */
export function boundDelays(r: Reading): void {
  const latest = r.time.in(LAST_DELAY_SECONDS * 1_000);
  r.sql.run("UPDATE jobs SET not_before = ?1 WHERE not_before > ?1", latest);
}

/** Milliseconds until the next delayed retry; null when none is delayed. */
export function nextDelay(r: Reading): number | null {
  const next = r.sql.get<{ not_before: string }>("SELECT not_before FROM jobs WHERE not_before IS NOT NULL ORDER BY not_before LIMIT 1");
  return next === null ? null : Math.max(0, Math.ceil(Date.parse(next.not_before) - r.time.now()));
}

function lease(w: Writing, row: JobRow, job: Job, endpointId: string, leaseMs: number): Claim {
  const edit = new JobEdit(w, row);
  const attempt = row.attempts + 1;
  row.attempts = attempt;
  row.leased_by = endpointId;
  edit.move("leased");
  const lease = {
    lease_id: newId("lease"),
    job_id: row.job_id,
    endpoint_id: endpointId,
    attempt,
    kind: row.kind,
    lane: row.lane,
    acquired_at: w.now,
    expires_at: w.time.in(leaseMs),
  };
  w.sql.run("INSERT INTO attempts (job, attempt, state, claimed_at) VALUES (?, ?, 'claimed', ?)", row.sequence, attempt, w.now);
  w.sql.run(
    "INSERT INTO leases (job, lease_id, endpoint_id, attempt, kind, lane, acquired_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    row.sequence,
    lease.lease_id,
    endpointId,
    attempt,
    row.kind,
    row.lane,
    lease.acquired_at,
    lease.expires_at,
  );
  openSegments(w, row.sequence, attempt);
  edit.event({
    event_type: "job.leased",
    message: `Attempt ${attempt} was claimed.`,
    payload: { attempt, endpoint_id: endpointId, lease_id: lease.lease_id },
  });
  edit.save();
  return {
    job: { ...job, state: "leased", attempts: attempt, leased_by: endpointId, updated_at: row.updated_at },
    attempt: {
      job_id: row.job_id,
      attempt,
      state: "claimed",
      shim: null,
      process: null,
      claimed_at: w.now,
      started_at: null,
      ended_at: null,
      outcome: null,
    },
    lease,
  };
}
