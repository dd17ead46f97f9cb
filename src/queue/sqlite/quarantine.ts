import { inSavepoint, type Writing } from "./access.ts";
import { JobEdit } from "./job-edit.ts";
import { type JobHead, jobHead } from "./job-rows.ts";
import { storable } from "./record-json.ts";
import { isConstraint } from "./sqlite-failure.ts";

const REASON_MAX = 2_000;

/** Keep a record out of the lanes. Needs none of its JSON, so it works on what cannot be read. A second reason changes nothing. */
export function quarantineRow(w: Writing, row: JobHead, reason: string): void {
  if (row.quarantine !== null) return;
  const edit = new JobEdit(w, row);
  row.quarantine = storable(reason, REASON_MAX);
  edit.event({
    event_type: "job.quarantined",
    level: "error",
    message: `The job is kept out of the queue until it is repaired: ${reason}`,
    payload: { reason: row.quarantine },
  });
  edit.save();
  w.touch("queue");
}

/**
 * Keep a record out of the lanes whatever is wrong with it. Where not even an event can be added to its history, that goes without: a job that
 * nothing can be done with must not stand at the head of its lane.
 */
export function setAside(w: Writing, row: JobHead, reason: string): void {
  try {
    inSavepoint(w, () => quarantineRow(w, { ...row }, reason));
  } catch (error) {
    if (!isConstraint(error)) throw error;
    w.sql.run("UPDATE jobs SET quarantine = ?, ready = 0 WHERE sequence = ?", storable(reason, REASON_MAX), row.sequence);
    w.touch("queue");
  }
}

export const quarantine = (w: Writing, jobId: string, reason: string): void => quarantineRow(w, jobHead(w, jobId), reason);
