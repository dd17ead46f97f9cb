import type { Attempt } from "../../domain/attempt.ts";
import type { Job } from "../../domain/job.ts";
import type { Writing } from "./access.ts";
import { ATTEMPT_COLUMNS, type AttemptRow, checkAttempt } from "./attempt-rows.ts";
import { lostId } from "./job-index.ts";
import { COLUMNS, checkJob, type JobRow } from "./job-rows.ts";
import { setAside } from "./quarantine.ts";

/**
 * Claimed and running attempts with their jobs, in the order of submission. What cannot be read is quarantined and left out: its processes,
 * if it has any, are not touched. What can is in quarantine no longer.
 */
export function openAttempts(w: Writing): { readonly job: Job; readonly attempt: Attempt }[] {
  const open = w.sql.all<AttemptRow & { readonly job: number }>(
    `SELECT job, ${ATTEMPT_COLUMNS} FROM attempts WHERE state IN ('claimed', 'running') ORDER BY job, attempt`,
  );
  const found: { job: Job; attempt: Attempt }[] = [];
  for (const attemptRow of open) {
    const row = w.sql.get<JobRow>(`SELECT ${COLUMNS.all} FROM jobs WHERE sequence = ?`, attemptRow.job);
    // Only the current attempt of a job that is out can be taken over; anything else is for the audit.
    if (row === null || row.attempts !== attemptRow.attempt || (row.state !== "leased" && row.state !== "running")) continue;
    const job = checkJob(row);
    const attempt = checkAttempt(attemptRow, row.job_id);
    const lost = lostId(w, row);
    if ("unreadable" in job) setAside(w, row, job.unreadable);
    else if ("unreadable" in attempt) setAside(w, row, attempt.unreadable);
    else if (lost !== null) setAside(w, row, lost);
    else {
      // Whoever takes it over says so, should there be another reason.
      if (row.quarantine !== null) w.sql.run("UPDATE jobs SET quarantine = NULL WHERE sequence = ?", row.sequence);
      found.push({ job: { ...job.job, quarantine: null }, attempt: attempt.attempt });
    }
  }
  return found;
}
