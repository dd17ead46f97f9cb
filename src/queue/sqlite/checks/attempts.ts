import type { AttemptState } from "../../../domain/attempt.ts";
import type { JobState, Outcome } from "../../../domain/job.ts";
import { isTerminal } from "../../../domain/transitions.ts";
import type { Writing } from "../access.ts";
import { type AttemptRow, attemptRows, checkAttempt } from "../attempt-rows.ts";
import { JobEdit } from "../job-edit.ts";
import { COLUMNS, type JobHead } from "../job-rows.ts";
import type { Damage, JobCheck } from "./damage.ts";

const isOpen = (state: AttemptState): boolean => state === "claimed" || state === "running";

/** What the current attempt of a job in this state has to be; null when it must only not be open. */
const CURRENT: Readonly<Record<JobState, AttemptState | null>> = {
  queued: null,
  leased: "claimed",
  running: "running",
  succeeded: null,
  failed: null,
  canceled: null,
};

/** Attempts are numbered from 1 without gaps, the job's row counts them, and only the current one of a job that is out is open. */
export const attempts: JobCheck = (r, { from, to }) => {
  const jobs = r.sql.all<JobHead>(
    `SELECT ${COLUMNS.head} FROM jobs WHERE sequence BETWEEN ? AND ? AND (attempts > 0 OR
    EXISTS (SELECT 1 FROM attempts WHERE attempts.job = jobs.sequence))`,
    from,
    to,
  );
  return jobs.flatMap((job) => ofJob(job, attemptRows(r, job.sequence)));
};

function ofJob(job: JobHead, rows: readonly AttemptRow[]): Damage[] {
  const damages: Damage[] = [];
  const find = (check: string, detail: string, mend: Damage["mend"]) => damages.push({ check, subject: job.job_id, detail, mend });

  const last = rows.at(-1)?.attempt ?? 0;
  if (last !== rows.length) find("attempt_sequence", `${rows.length} attempts are numbered up to ${last}`, null);
  const voided = rows.filter((row) => row.state === "void").length;
  if (job.attempts !== last || job.voided_attempts !== voided) {
    const counted = `${job.attempts} attempts, ${job.voided_attempts} void`;
    find("attempt_counter", `its row counts ${counted}; there are ${last}, ${voided} void`, (w) => recount(w, job.sequence));
  }
  for (const row of rows) {
    const checked = checkAttempt(row, job.job_id);
    if ("unreadable" in checked) find("attempt_record", checked.unreadable, null);
    if (isOpen(row.state) && (row.attempt < last || isTerminal(job.state))) {
      find("attempt_state", `attempt ${row.attempt} is ${row.state}, though it is over`, (w) => endAttempt(w, job.sequence, row.attempt));
    }
  }
  const current = rows.at(-1);
  const expected = CURRENT[job.state];
  if (expected !== null && current?.state !== expected) {
    const startedUnnoticed = job.state === "leased" && current?.state === "running";
    find(
      "attempt_state",
      `it is ${job.state}; its attempt is ${current?.state ?? "missing"}`,
      startedUnnoticed ? (w) => markRunning(w, job.sequence) : null,
    );
  }
  if (job.state === "queued" && current !== undefined && isOpen(current.state)) {
    find("attempt_state", `it is queued; its attempt ${current.attempt} is ${current.state} and may have processes`, null);
  }
  return damages;
}

function recount(w: Writing, job: number): void {
  w.sql.run(
    `UPDATE jobs SET attempts = coalesce((SELECT max(attempt) FROM attempts WHERE job = ?1), 0),
       voided_attempts = (SELECT count(*) FROM attempts WHERE job = ?1 AND state = 'void') WHERE sequence = ?1`,
    job,
  );
}

function endAttempt(w: Writing, job: number, attempt: number): void {
  const outcome: Outcome = {
    reason: "outcome_unknown",
    exit_code: null,
    signal: null,
    message: "ended by a repair: its job had gone on without it",
    residual: [],
  };
  w.sql.run(
    "UPDATE attempts SET state = 'ended', ended_at = ?, outcome = ? WHERE job = ? AND attempt = ? AND state IN ('claimed', 'running')",
    w.now,
    JSON.stringify(outcome),
    job,
    attempt,
  );
}

function markRunning(w: Writing, job: number): void {
  const row = w.sql.get<JobHead>(`SELECT ${COLUMNS.head} FROM jobs WHERE sequence = ?`, job);
  if (row?.state !== "leased") return;
  const edit = new JobEdit(w, row);
  edit.move("running");
  edit.event({ event_type: "job.running", message: `Attempt ${row.attempts} is running.`, payload: { attempt: row.attempts } });
  edit.save();
}
