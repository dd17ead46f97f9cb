import type { Reading } from "../access.ts";
import { disagreement, rebuildJobIndexes } from "../job-index.ts";
import { COLUMNS, type JobHead } from "../job-rows.ts";
import type { Damage, Range } from "./damage.ts";

const JOBS = `SELECT ${COLUMNS.head} FROM jobs NOT INDEXED WHERE sequence BETWEEN ? AND ?`;

/** Every job is found by its id, and stands among those that may be claimed exactly if its row says so. */
export function jobIndexes(r: Reading, { from, to }: Range): Damage[] {
  return disagreements(r, from, to).map(({ row, detail }) => ({
    check: "job_index",
    subject: row.job_id,
    detail,
    // The mending of one mends all, and takes time: the others find nothing left to do.
    mend: (w) => {
      if (disagreements(w, row.sequence, row.sequence).length > 0) rebuildJobIndexes(w);
    },
  }));
}

const disagreements = (r: Reading, from: number, to: number): { row: JobHead; detail: string }[] =>
  r.sql.all<JobHead>(JOBS, from, to).flatMap((row) => {
    const detail = disagreement(r, row);
    return detail === null ? [] : [{ row, detail }];
  });
