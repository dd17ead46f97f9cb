import os from "node:os";
import * as v from "valibot";
import { ProcessIdentity } from "../../../domain/attempt.ts";
import { isTerminal } from "../../../domain/transitions.ts";
import { bootId } from "../../../lib/system/process-identity.ts";
import type { Reading, Writing } from "../access.ts";
import { attemptRows } from "../attempt-rows.ts";
import { JobEdit } from "../job-edit.ts";
import { COLUMNS, checkJob, type JobHead, type JobRow } from "../job-rows.ts";
import { quarantineRow } from "../quarantine.ts";
import { submissionDigest } from "../submit.ts";
import { endRow } from "../unreadable.ts";
import type { Budget } from "./budget.ts";
import { type Damage, type Range, type Steps, type Tally, unlessHeld } from "./damage.ts";

/** Every job's record can be read, says what was submitted, and is not kept out of the lanes. */
export function* records(r: Reading, budget: Budget, { from, to }: Range, tally: Tally): Steps {
  for (let next = from; ; ) {
    // One at a time: a record may be long.
    const row = r.sql.get<JobRow>(`SELECT ${COLUMNS.all} FROM jobs WHERE sequence BETWEEN ? AND ? ORDER BY sequence LIMIT 1`, next, to);
    if (row === null) return;
    tally("jobs", 1);
    yield* ofRecord(r, row);
    next = row.sequence + 1;
    budget.take(RECORD_ROWS, row.spec.length + row.metadata.length + row.used_artifact_refs.length);
    if (budget.spent) {
      budget.renew();
      yield null;
    }
  }
}

/** Reading a record, checking it and digesting it takes as long as this many rows. */
const RECORD_ROWS = 10;

function ofRecord(r: Reading, row: JobRow): Damage[] {
  const checked = checkJob(row);
  if ("unreadable" in checked) return [unreadable(r, row, checked.unreadable)];
  const damages: Damage[] = [];
  if (submissionDigest(checked.job) !== row.submission_digest) {
    damages.push({ check: "submission_digest", subject: row.job_id, detail: "the record is not the one that was submitted", mend: null });
  }
  if (row.quarantine !== null) {
    const damage = { check: "quarantine", subject: row.job_id, detail: row.quarantine, mend: (w: Writing) => release(w, row.sequence) };
    damages.push(isOut(row) && !r.held.has(row.job_id) ? leftOut(damage) : unlessHeld(r, row.job_id, damage, MAY_RUN));
  }
  return damages;
}

const MAY_RUN = "left, because its attempt may still have processes: repair again when they have ended";

const isOut = ({ state }: JobHead): boolean => state === "leased" || state === "running";

/** Nobody here can say whether what kept it out still holds. */
const leftOut = (damage: Damage): Damage => ({
  ...damage,
  detail: `${damage.detail}; left, because its attempt is out: a worker that starts takes it over, or says again why it cannot`,
  mend: null,
});

function unreadable(r: Reading, row: JobRow, detail: string): Damage {
  const damage = { check: "record", subject: row.job_id };
  if (isTerminal(row.state)) return { ...damage, detail: `${detail}; the job has ended`, mend: null };
  if (row.state === "queued" || noProcessLeft(r, row)) {
    return unlessHeld(r, row.job_id, { ...damage, detail, mend: (w) => fail(w, row.sequence, detail) });
  }
  if (row.quarantine === null) return { ...damage, detail, mend: (w) => keepOut(w, row.sequence, detail) };
  return {
    ...damage,
    detail: `${detail}; its attempt ${row.attempts} may have processes, so it is kept out and left as it is`,
    mend: null,
  };
}

/** Nothing survives a reboot. Short of that, only the worker can find out what an attempt has left. */
function noProcessLeft(r: Reading, row: JobRow): boolean {
  const current = attemptRows(r, row.sequence).at(-1);
  if (current?.shim == null) return false;
  let identity: unknown;
  try {
    identity = JSON.parse(current.shim);
  } catch {
    return false;
  }
  return v.is(ProcessIdentity, identity) && identity.hostname === os.hostname() && identity.boot_id !== bootId();
}

const head = (w: Writing, sequence: number): JobHead | null =>
  w.sql.get<JobHead>(`SELECT ${COLUMNS.head} FROM jobs WHERE sequence = ?`, sequence);

function keepOut(w: Writing, sequence: number, reason: string): void {
  const row = head(w, sequence);
  if (row !== null) quarantineRow(w, row, reason);
}

function release(w: Writing, sequence: number): void {
  const row = head(w, sequence);
  if (row === null || row.quarantine === null) return;
  const edit = new JobEdit(w, row);
  row.quarantine = null;
  if (row.state === "queued") {
    edit.event({
      event_type: "job.requeued",
      message: "The record can be read; the job waits in the queue again.",
      payload: { repaired: true },
    });
  }
  edit.save();
  w.touch("queue");
}

const fail = (w: Writing, sequence: number, detail: string): void => {
  const row = head(w, sequence);
  if (row !== null && !isTerminal(row.state)) endRow(w, row, "failed", detail);
};
