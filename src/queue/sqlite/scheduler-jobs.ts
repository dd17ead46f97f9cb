import { RelayError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { Page } from "../../domain/page.ts";
import type { SchedulerJob, SchedulerName } from "../../domain/scheduler.ts";
import { newId } from "../../lib/ids.ts";
import type { Fence, PageRequest, SubmissionFinding } from "../store.ts";
import type { Reading, Writing } from "./access.ts";
import { openHead } from "./attempt-rows.ts";
import { JobEdit } from "./job-edit.ts";
import { type JobHead, jobSequence } from "./job-rows.ts";
import { pageOf, rowsOfPage } from "./pages.ts";
import { storable } from "./record-json.ts";
import {
  conflict,
  type SchedulerRow,
  SELECT_SCHEDULER,
  schedulerRow,
  schedulerTaskName,
  toSchedulerJob,
  writtenRow,
} from "./scheduler-rows.ts";

interface Intent {
  readonly provider: SchedulerName;
  readonly marker: string;
}

/** On record before the submit command runs, with the task that stands for the scheduler's job. Repeating it changes nothing. */
export function intendSubmission(w: Writing, fence: Fence, { provider, marker }: Intent): SchedulerJob {
  const { row } = openHead(w, fence);
  const known = schedulerRow(w, row.sequence, fence.attempt);
  if (known !== null) {
    if (known.provider === provider && known.marker === marker) return toSchedulerJob(known);
    throw conflict(`attempt ${fence.attempt} of ${fence.job_id} has a job of ${known.provider} on record, ${known.marker}`, known);
  }
  const edit = new JobEdit(w, row);
  const task = addTask(w, edit, schedulerTaskName(provider, fence.attempt));
  w.sql.run(
    "INSERT INTO scheduler_jobs (job, attempt, task, provider, marker, intended_at) VALUES (?, ?, ?, ?, ?, ?)",
    row.sequence,
    fence.attempt,
    task,
    provider,
    marker,
    w.now,
  );
  edit.save();
  return toSchedulerJob(writtenRow(w, row.sequence, row.job_id, fence.attempt));
}

/** Returns the task's number. Callers save the edit. */
function addTask(w: Writing, edit: JobEdit, name: string): number {
  const job = edit.row.sequence;
  const task = (w.sql.get<{ last: number | null }>("SELECT max(sequence) AS last FROM tasks WHERE job = ?", job)?.last ?? 0) + 1;
  const taskId = newId("task");
  w.sql.run(
    "INSERT INTO tasks (job, sequence, task_id, name, state, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 'queued', ?5, ?5)",
    job,
    task,
    taskId,
    name,
    w.now,
  );
  edit.event({
    event_type: "task.queued",
    message: `Task ${name} waits for the scheduler.`,
    payload: { task_id: taskId, name },
  });
  return task;
}

/**
 * What became of an intended submission. Repeating what is on record changes nothing.
 *
 * @throws RelayError state_conflict where nothing is intended, and for what contradicts the record: another id, a refusal or a doubt of what is submitted,
 * anything of what is refused
 */
export function recordSubmission(w: Writing, fence: Fence, finding: SubmissionFinding): SchedulerJob {
  const { row } = openHead(w, fence);
  const known = schedulerRow(w, row.sequence, fence.attempt);
  if (known === null) throw nothingIntended(fence);
  if (isKnown(known, finding)) return toSchedulerJob(known);
  if (known.submission === "submitted" || known.submission === "refused") {
    throw conflict(
      `the submission of attempt ${fence.attempt} of ${fence.job_id} is ${known.submission} and cannot become ${finding.kind}`,
      known,
    );
  }
  const submitted = finding.kind === "submitted";
  w.sql.run(
    "UPDATE scheduler_jobs SET submission = ?, native_id = ?, scheduler_cluster = ?, submitted_at = ? WHERE job = ? AND attempt = ?",
    finding.kind,
    submitted ? storable(finding.native_id) : null,
    submitted && finding.scheduler_cluster !== null ? storable(finding.scheduler_cluster) : null,
    submitted ? w.now : null,
    row.sequence,
    fence.attempt,
  );
  const event = eventOf(known, finding);
  const edit = new JobEdit<JobHead>(w, row);
  if (event !== null) edit.event(event);
  edit.save();
  return toSchedulerJob(writtenRow(w, row.sequence, row.job_id, fence.attempt));
}

function isKnown(known: SchedulerRow, finding: SubmissionFinding): boolean {
  if (finding.kind !== known.submission) return false;
  return finding.kind !== "submitted" || (finding.native_id === known.native_id && finding.scheduler_cluster === known.scheduler_cluster);
}

function eventOf(known: SchedulerRow, finding: SubmissionFinding): NewEvent | null {
  const about = { attempt: known.attempt, task_id: known.task_id, scheduler: known.provider, marker: known.marker };
  switch (finding.kind) {
    case "submitted":
      return {
        event_type: "scheduler.job_detected",
        message: `The job is ${finding.native_id} of ${known.provider}.`,
        payload: {
          ...about,
          scheduler_job_id: finding.native_id,
          cluster: finding.scheduler_cluster,
          reconciled: known.submission === "unresolved",
        },
      };
    case "unresolved":
      return {
        event_type: "scheduler.reconciliation_unresolved",
        level: "warning",
        message: `Whether ${known.provider} has the job is not known; nothing is submitted again: ${finding.message}`,
        payload: about,
      };
    case "refused":
      return null;
  }
}

export const nothingIntended = (fence: Fence): RelayError =>
  new RelayError("state_conflict", `attempt ${fence.attempt} of ${fence.job_id} was not meant for a scheduler`, { ...fence });

/** In the order of attempts; `page.cursor` is an attempt's number. */
export function schedulerJobs(r: Reading, jobId: string, page: PageRequest): Page<SchedulerJob> {
  const job = jobSequence(r, jobId);
  const sizes = r.sql.all<{ bytes: number }>(
    "SELECT coalesce(octet_length(status), 0) AS bytes FROM scheduler_jobs WHERE job = ? AND attempt >= ? ORDER BY attempt LIMIT ?",
    job,
    page.cursor,
    page.limit,
  );
  const rows = r.sql.all<SchedulerRow>(
    `${SELECT_SCHEDULER} WHERE s.job = ? AND s.attempt >= ? ORDER BY s.attempt LIMIT ?`,
    job,
    page.cursor,
    rowsOfPage(sizes),
  );
  const total = r.sql.get<{ n: number }>("SELECT count(*) AS n FROM scheduler_jobs WHERE job = ?", job)?.n ?? 0;
  return pageOf(rows, (row) => row.attempt, toSchedulerJob, page, total);
}

/** Schedulers give out an id again after a while: the newest job that has had it. */
export function schedulerJobOf(r: Reading, provider: SchedulerName | null, nativeId: string): SchedulerJob | null {
  const row = r.sql.get<SchedulerRow>(
    `${SELECT_SCHEDULER} WHERE s.native_id = ?1 AND (?2 IS NULL OR s.provider = ?2) ORDER BY s.job DESC, s.attempt DESC LIMIT 1`,
    nativeId,
    provider,
  );
  return row === null ? null : toSchedulerJob(row);
}

/**
 * What may still be going on at a scheduler, in the order of submission: of open attempts whatever is not refused, of others what is submitted and has not ended,
 * as long as a source knows it.
 */
export function openSchedulerJobs(r: Reading): SchedulerJob[] {
  return r.sql
    .all<SchedulerRow>(
      `${SELECT_SCHEDULER} CROSS JOIN attempts ON attempts.job = s.job AND attempts.attempt = s.attempt
       WHERE s.ended_at IS NULL AND s.submission <> 'refused' AND (attempts.state IN ('claimed', 'running')
         OR (s.submission = 'submitted' AND coalesce(s.status ->> 'record_found', 1) <> 0))
       ORDER BY s.job, s.attempt`,
    )
    .map(toSchedulerJob);
}
