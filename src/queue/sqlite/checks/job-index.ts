import type { Reading } from "../access.ts";
import { disagreement } from "../job-index.ts";
import { COLUMNS, type JobHead } from "../job-rows.ts";
import type { Damage, Range } from "./damage.ts";

/** Every job is found by its id, and stands among those that may be claimed exactly if its row says so. One finding, because one mending mends all. */
export function jobIndexes(r: Reading, { from, to }: Range): Damage[] {
  return r.sql
    .all<JobHead & { ready: number }>(`SELECT ${COLUMNS.head} FROM jobs NOT INDEXED WHERE sequence BETWEEN ? AND ?`, from, to)
    .flatMap((row): Damage[] => {
      const detail = disagreement(r, row);
      return detail === null ? [] : [{ check: "job_index", subject: row.job_id, detail, mend: (w) => void w.sql.run("REINDEX jobs") }];
    });
}
