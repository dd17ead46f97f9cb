import type { Reading } from "../access.ts";
import type { Budget } from "./budget.ts";
import type { Damage, JobCheck, Steps, Tally } from "./damage.ts";

interface JobKey {
  readonly sequence: number;
  readonly job_id: string;
  readonly bound_to: string | null;
}

/** Every job's key is bound to it, with its digest. */
export const idempotencyKeys: JobCheck = (r, { from, to }) => {
  const rows = r.sql.all<JobKey>(
    `SELECT jobs.sequence, jobs.job_id, i.job_id AS bound_to FROM jobs
     LEFT JOIN idempotency AS i ON i.owner_session_id = coalesce(jobs.owner_session_id, '') AND i.idempotency_key = jobs.idempotency_key
     WHERE jobs.sequence BETWEEN ? AND ?
       AND (i.job_id IS NULL OR i.job_id <> jobs.job_id OR i.job_digest <> jobs.submission_digest OR i.state <> 'committed')`,
    from,
    to,
  );
  return rows.map(({ sequence, job_id, bound_to }): Damage => {
    if (bound_to !== null && bound_to !== job_id) {
      return { check: "idempotency", subject: job_id, detail: `its key is bound to ${bound_to}`, mend: null };
    }
    const detail = bound_to === null ? "its key is not on record" : "its key is on record with another digest or as retired";
    return {
      check: "idempotency",
      subject: job_id,
      detail,
      mend: (w) =>
        void w.sql.run(
          `INSERT INTO idempotency (owner_session_id, idempotency_key, job_id, job_digest, state)
           SELECT coalesce(owner_session_id, ''), idempotency_key, job_id, submission_digest, 'committed' FROM jobs WHERE sequence = ?
           ON CONFLICT DO UPDATE SET job_digest = excluded.job_digest, state = 'committed' WHERE job_id = excluded.job_id`,
          sequence,
        ),
    };
  });
};

interface Key {
  readonly owner_session_id: string;
  readonly idempotency_key: string;
  readonly job_id: string;
  readonly orphaned: number;
}

/** A key whose job is gone is a tombstone. */
export function* orphanedKeys(r: Reading, budget: Budget, tally: Tally): Steps {
  let after: Pick<Key, "owner_session_id" | "idempotency_key"> = { owner_session_id: "", idempotency_key: "" };
  for (;;) {
    const limit = budget.rows;
    const keys = r.sql.all<Key>(
      `SELECT owner_session_id, idempotency_key, job_id,
         i.state = 'committed' AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = i.job_id) AS orphaned
       FROM idempotency AS i WHERE (owner_session_id, idempotency_key) > (?, ?) ORDER BY owner_session_id, idempotency_key LIMIT ?`,
      after.owner_session_id,
      after.idempotency_key,
      limit,
    );
    tally("idempotency", keys.length);
    for (const { job_id, orphaned } of keys) if (orphaned === 1) yield orphan(job_id);
    const last = keys.at(-1);
    if (last === undefined || keys.length < limit) return;
    after = last;
    budget.renew();
    yield null;
  }
}

const orphan = (jobId: string): Damage => ({
  check: "idempotency",
  subject: jobId,
  detail: "a key is bound to it, and it does not exist",
  mend: (w) =>
    void w.sql.run(
      "UPDATE idempotency SET state = 'retired' WHERE job_id = ?1 AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.job_id = ?1)",
      jobId,
    ),
});
