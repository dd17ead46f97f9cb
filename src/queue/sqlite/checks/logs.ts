import * as v from "valibot";
import { LOG_STREAMS, type LogStream, StreamCapture } from "../../../domain/log.ts";
import type { Reading, Writing } from "../access.ts";
import { keeping } from "../ingest.ts";
import { segmentRow } from "../segments.ts";
import { type Damage, type JobCheck, unlessHeld } from "./damage.ts";

/** Every attempt has a segment of each stream, and each begins where the one before it ends. */
export const segmentBases: JobCheck = (r, { from, to }) => [
  ...LOG_STREAMS.flatMap((stream) =>
    r.sql
      .all<{ job: number; job_id: string; attempt: number }>(
        `SELECT attempts.job, jobs.job_id, attempts.attempt FROM attempts CROSS JOIN jobs ON jobs.sequence = attempts.job
         WHERE attempts.job BETWEEN ?1 AND ?2
           AND NOT EXISTS (SELECT 1 FROM segments AS s WHERE s.job = attempts.job AND s.attempt = attempts.attempt AND s.stream = ?3)`,
        from,
        to,
        stream,
      )
      .map(
        ({ job, job_id, attempt }): Damage => ({
          check: "segment",
          subject: job_id,
          detail: `attempt ${attempt} has no ${stream} segment`,
          mend: (w) => {
            w.sql.run("INSERT OR IGNORE INTO segments (job, attempt, stream, base) VALUES (?, ?, ?, 0)", job, attempt, stream);
            joinSegments(w, job, stream);
          },
        }),
      ),
  ),
  ...r.sql
    .all<{ job: number; job_id: string; attempt: number; stream: LogStream; base: number; expected: number }>(
      `SELECT s.*, jobs.job_id FROM (
         SELECT job, attempt, stream, base, lag(base + length, 1, 0) OVER (PARTITION BY job, stream ORDER BY attempt) AS expected
         FROM segments WHERE job BETWEEN ?1 AND ?2) AS s CROSS JOIN jobs ON jobs.sequence = s.job
       WHERE s.base <> s.expected`,
      from,
      to,
    )
    .map(
      ({ job, job_id, attempt, stream, base, expected }): Damage => ({
        check: "segment",
        subject: job_id,
        detail: `${stream} of attempt ${attempt} begins at ${base}, not at ${expected}`,
        mend: (w) => joinSegments(w, job, stream),
      }),
    ),
];

function joinSegments(w: Writing, job: number, stream: LogStream): void {
  w.sql.run(
    `UPDATE segments SET base = coalesce((
       SELECT sum(earlier.length) FROM segments AS earlier
       WHERE earlier.job = ?1 AND earlier.stream = ?2 AND earlier.attempt < segments.attempt), 0)
     WHERE job = ?1 AND stream = ?2`,
    job,
    stream,
  );
}

/** The events about a stream reach as far as its segments do: both are committed together. */
export const logPositions = (r: Reading, job: number, jobId: string, told: Readonly<Record<LogStream, number>>): Damage[] =>
  r.sql
    .all<{ stream: LogStream; written: number }>(
      "SELECT stream, max(base + length) AS written FROM segments WHERE job = ? GROUP BY stream",
      job,
    )
    .filter(({ stream, written }) => written !== told[stream])
    .map(({ stream, written }) =>
      unlessHeld(r, jobId, {
        check: "log_position",
        subject: jobId,
        detail: `${stream} has ${written} bytes; its events tell of ${told[stream]}`,
        // Events are never rewritten, so the last segment follows them where it can.
        mend: (w) => followEvents(w, job, stream, written, told[stream]),
      }),
    );

/** Nothing changes where more was written since. */
function followEvents(w: Writing, job: number, stream: LogStream, written: number, told: number): void {
  w.sql.run(
    `UPDATE segments SET length = ?3 - base WHERE job = ?1 AND stream = ?2 AND base <= ?3
       AND attempt = (SELECT max(attempt) FROM segments WHERE job = ?1 AND stream = ?2)
       AND (SELECT max(base + length) FROM segments WHERE job = ?1 AND stream = ?2) = ?4`,
    job,
    stream,
    told,
    written,
  );
}

/** What an ended attempt has kept is what was recorded of it: as many bytes have their place in the job's log. */
export const keptBytes: JobCheck = (r, { from, to }) =>
  r.sql
    .all<{ job: number; job_id: string; attempt: number; stream: LogStream; length: number; kept: number | null }>(
      `SELECT s.job, jobs.job_id, s.attempt, s.stream, s.length,
              CASE WHEN json_valid(s.capture) THEN s.capture ->> '$.kept' END AS kept
       FROM segments AS s CROSS JOIN jobs ON jobs.sequence = s.job
       WHERE s.job BETWEEN ?1 AND ?2 AND s.capture IS NOT NULL
         AND s.length IS NOT CASE WHEN json_valid(s.capture) THEN s.capture ->> '$.kept' END`,
      from,
      to,
    )
    .map(
      ({ job, job_id, attempt, stream, length, kept }): Damage => ({
        check: "log_kept",
        subject: job_id,
        detail: `${stream} of attempt ${attempt} has ${length} recorded bytes, and ${kept ?? "no number of them"} as kept`,
        mend: (w) => keepRecorded(w, job, attempt, stream, length),
      }),
    );

function keepRecorded(w: Writing, job: number, attempt: number, stream: LogStream, length: number): void {
  const row = segmentRow(w, job, attempt, stream);
  const capture = parsedCapture(row?.capture ?? null) ?? { observed: 0, kept: 0, dropped: 0, truncated: null, complete: false };
  w.sql.run(
    "UPDATE segments SET capture = ? WHERE job = ? AND attempt = ? AND stream = ?",
    JSON.stringify(keeping(capture, length)),
    job,
    attempt,
    stream,
  );
}

function parsedCapture(text: string | null): StreamCapture | null {
  if (text === null) return null;
  try {
    const parsed = v.safeParse(StreamCapture, JSON.parse(text));
    return parsed.success ? parsed.output : null;
  } catch {
    return null;
  }
}
