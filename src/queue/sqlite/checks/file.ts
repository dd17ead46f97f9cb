import type { Reading } from "../access.ts";
import { type Budget, walk } from "./budget.ts";
import type { Damage, Steps, WholeCheck } from "./damage.ts";
import { numbers, pagesOf } from "./sequences.ts";

/**
 * SQLite's own check of pages, indexes and constraints, as one finding. A repair builds all indexes anew, because an index can always be derived
 * from its table; what that does not mend is lost.
 */
export const integrity: WholeCheck = (r) => {
  const problems = r.sql
    .all<{ integrity_check: string }>("PRAGMA integrity_check(100)")
    .map((row) => row.integrity_check)
    .filter((line) => line !== "ok");
  if (problems.length === 0) return [];
  const detail = problems.join("; ").slice(0, 2_000);
  return [{ check: "integrity", subject: "queue.db", detail, mend: (w) => void w.sql.run("REINDEX") }];
};

/** Rows whose job or task is gone. */
export const foreignKeys: WholeCheck = (r) =>
  r.sql
    .all<{ table: string; rowid: number | null; parent: string }>("PRAGMA foreign_key_check")
    .slice(0, 1_001)
    .map(({ table, parent }) => ({
      check: "foreign_key",
      subject: table,
      detail: `a row refers to a row of ${parent} that does not exist`,
      mend: null,
    }));

/** The numbers that this process keeps in memory. Those of jobs that have not ended are read at once: there are only so many of these. */
export function* counters(r: Reading, budget: Budget): Steps {
  if (!r.counts.activeAgree(r.sql)) yield wrongNumbers("of jobs that have not ended");
  // Jobs are only added, with higher numbers: what was counted before the last step has not changed.
  const { n } = yield* walk(
    budget,
    pagesOf(r, JOBS, () => undefined),
  );
  if (n !== r.counts.total) yield wrongNumbers("of all jobs");
}

const JOBS = numbers("jobs", "sequence", "TRUE");

const wrongNumbers = (what: string): Damage => ({
  check: "counters",
  subject: "queue.db",
  detail: `the numbers ${what} in memory are not those of the tables`,
  mend: (w) => w.counts.read(w.sql),
});
