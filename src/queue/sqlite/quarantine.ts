import type { Writing } from "./access.ts";
import { JobEdit } from "./job-edit.ts";
import { type JobHead, jobHead } from "./job-rows.ts";
import { storable } from "./record-json.ts";

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

export const quarantine = (w: Writing, jobId: string, reason: string): void => quarantineRow(w, jobHead(w, jobId), reason);
