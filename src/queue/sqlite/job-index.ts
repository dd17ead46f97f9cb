import type { Reading, Writing } from "./access.ts";
import type { JobHead } from "./job-rows.ts";

/** Whether a job may be claimed, by its row. */
export const isReady = ({ state, not_before, quarantine }: Pick<JobHead, "state" | "not_before" | "quarantine">): boolean =>
  state === "queued" && not_before === null && quarantine === null;

/** Why a job is not found by its id, which is how every call names it; null when it is. */
export function lostId(r: Reading, { sequence, job_id }: Pick<JobHead, "sequence" | "job_id">): string | null {
  const found = r.sql.get<{ sequence: number }>("SELECT sequence FROM jobs WHERE job_id = ?", job_id)?.sequence;
  if (found === sequence) return null;
  return found === undefined
    ? `the index of ids has no ${job_id}, the id of job ${sequence}`
    : `the index of ids takes ${job_id}, the id of job ${sequence}, for that of job ${found}`;
}

/** What the indexes say of a job that its row does not; null when they agree. */
export function disagreement(r: Reading, row: JobHead): string | null {
  const lost = lostId(r, row);
  if (lost !== null) return lost;
  const entry = r.sql.get(
    "SELECT 1 FROM jobs INDEXED BY jobs_ready WHERE lane = ? AND kind = ? AND ready = 1 AND sequence = ?",
    row.lane,
    row.kind,
    row.sequence,
  );
  if ((entry !== null) === isReady(row)) return null;
  return entry === null
    ? "it waits, and the index of waiting jobs does not have it"
    : "it does not wait, and the index of waiting jobs has it";
}

const READY = "(state = 'queued' AND not_before IS NULL AND quarantine IS NULL)";

/** Builds the indexes of jobs anew, and lets each job wait exactly if the rest of its row says so. Reads all jobs. */
export function rebuildJobIndexes(w: Writing): void {
  w.sql.run("REINDEX jobs");
  w.sql.run(`UPDATE jobs SET ready = ${READY} WHERE ready <> ${READY}`);
}
