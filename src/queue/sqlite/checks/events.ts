import { LOG_STREAMS, type LogStream } from "../../../domain/log.ts";
import type { Reading, Writing } from "../access.ts";
import { rowsOfPage } from "../pages.ts";
import { type Budget, type NumberedPage, walk } from "./budget.ts";
import type { Damage, Range, Steps, Tally } from "./damage.ts";
import { logPositions } from "./logs.ts";
import { counter, gaps } from "./sequences.ts";

/** How far the events about each stream reach, in bytes of the job's log. */
export type Told = Record<LogStream, number>;

/**
 * Events are numbered from 1 without gaps, the job's row knows the next number, payloads are JSON, and what they tell of the job's output is what
 * its segments say. Each event is read once.
 */
export function* events(r: Reading, budget: Budget, { from, to }: Range, tally: Tally): Steps {
  const jobs = r.sql.all<{ sequence: number; job_id: string }>(
    "SELECT sequence, job_id FROM jobs WHERE sequence BETWEEN ? AND ?",
    from,
    to,
  );
  for (const { sequence, job_id } of jobs) {
    const told: Told = { stdout: 0, stderr: 0 };
    const notJson: number[] = [];
    const found = yield* walk(budget, (after, limit) => {
      const page = eventPage(r, sequence, after, limit, budget, told, notJson);
      tally("events", page.n);
      return page;
    });
    const next = r.sql.get<{ next_seq: number }>("SELECT next_seq FROM jobs WHERE sequence = ?", sequence)?.next_seq;
    if (next === undefined) continue;
    if (found.n === 0) yield { check: "event_sequence", subject: job_id, detail: "it has no events", mend: null };
    else yield* gaps("event_sequence", job_id, found, "events");
    yield* counter("event_counter", job_id, next, found.high, "event", (w) => countEvents(w, sequence));
    yield* notJson.map(
      (seq): Damage => ({ check: "event_payload", subject: job_id, detail: `the payload of event ${seq} is not JSON`, mend: null }),
    );
    yield* logPositions(r, sequence, job_id, told);
  }
}

function countEvents(w: Writing, job: number): void {
  w.sql.run("UPDATE jobs SET next_seq = 1 + coalesce((SELECT max(seq) FROM events WHERE job = jobs.sequence), 0) WHERE sequence = ?", job);
}

const SIZES = "SELECT octet_length(payload) AS bytes FROM events WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?";

const LENGTH = `SELECT count(*) AS n, coalesce(sum(bytes), 0) AS bytes FROM (${SIZES})`;

const reach = (stream: LogStream): string =>
  `coalesce(max(CASE WHEN valid AND event_type = '${stream}.delta' THEN payload ->> '$.next_offset' END), 0) AS ${stream}`;

const PAGE = `SELECT count(*) AS n, coalesce(min(seq), 1) AS low, coalesce(max(seq), 0) AS high, coalesce(sum(NOT valid), 0) AS invalid,
    ${LOG_STREAMS.map(reach).join(", ")}
  FROM (SELECT seq, event_type, payload, json_valid(payload) AS valid FROM events WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?)`;

const INVALID = `SELECT seq FROM (SELECT seq, payload FROM events WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?) WHERE NOT json_valid(payload)`;

type Page = Told & { readonly n: number; readonly low: number; readonly high: number; readonly invalid: number };

/** Some events, as many as the step still has room for; what they tell is added to `told` and `notJson`. */
function eventPage(r: Reading, job: number, after: number, limit: number, budget: Budget, told: Told, notJson: number[]): NumberedPage {
  const { n: there, bytes } = r.sql.get<{ n: number; bytes: number }>(LENGTH, job, after, limit) ?? { n: 0, bytes: 0 };
  if (there === 0) return { n: 0, low: 1, high: 0, last: true };
  const rows = bytes <= budget.bytes ? there : rowsOfPage(r.sql.all<{ bytes: number }>(SIZES, job, after, limit), budget.bytes);
  const page = r.sql.get<Page>(PAGE, job, after, rows)!;
  budget.take(0, bytes);
  for (const stream of LOG_STREAMS) told[stream] = Math.max(told[stream], page[stream]);
  if (page.invalid > 0) notJson.push(...r.sql.all<{ seq: number }>(INVALID, job, after, rows).map(({ seq }) => seq));
  return { n: page.n, low: page.low, high: page.high, last: rows === there && there < limit };
}
