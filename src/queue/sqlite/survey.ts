import { isRelayError } from "../../domain/errors.ts";
import type { CheckDepth } from "../store.ts";
import type { Reading } from "./access.ts";
import { attempts } from "./checks/attempts.ts";
import { Budget } from "./checks/budget.ts";
import { type Damage, type JobCheck, type Range, type Steps, type Tally, unlessHeld } from "./checks/damage.ts";
import { events } from "./checks/events.ts";
import { counters, foreignKeys, integrity } from "./checks/file.ts";
import { jobIndexes } from "./checks/job-index.ts";
import { idempotencyKeys, orphanedKeys } from "./checks/keys.ts";
import { leases } from "./checks/leases.ts";
import { transformRecords, usedArtifactEdges } from "./checks/lineage.ts";
import { keptBytes, segmentBases } from "./checks/logs.ts";
import { records } from "./checks/records.ts";
import { schedulerRecords } from "./checks/scheduler.ts";
import { recordSequences, taskTimelines } from "./checks/sequences.ts";
import { taskStates } from "./checks/tasks.ts";

/** Findings that one report lists. */
export const FINDINGS_MAX = 1_000;
/** Jobs whose few rows of a kind are looked at in one step. */
const RANGE = 50;

/** Runs a function on what is committed; every failure is a RelayError. */
export type Read = <T>(fn: (r: Reading) => T) => Promise<T>;

/** A check with the name that it has in a report when it cannot be made. */
interface Check<Arguments extends unknown[]> {
  readonly name: string;
  readonly steps: (r: Reading, budget: Budget, ...rest: Arguments) => Steps;
}

type QueueCheck = Check<[Tally]>;
type RangeCheck = Check<[Range, Tally]>;

const atOnce = (name: string, find: (r: Reading) => readonly Damage[]): QueueCheck => ({ name, steps: find });

/** Of tables with few rows a job. */
const ofJobs = (name: string, table: string | null, find: JobCheck): RangeCheck => ({
  name,
  steps(r, _budget, range, tally) {
    if (table !== null) tally(table, rowsOf(r, table, range));
    return find(r, range);
  },
});

/** The same for checks whose mending changes what attempts hold. */
const ofAttempts = (name: string, table: string | null, find: JobCheck): RangeCheck =>
  ofJobs(name, table, (r, range) => find(r, range).map((damage) => unlessHeld(r, damage.subject, damage)));

const rowsOf = (r: Reading, table: string, { from, to }: Range): number =>
  r.sql.get<{ n: number }>(`SELECT count(*) AS n FROM ${table} WHERE job BETWEEN ? AND ?`, from, to)?.n ?? 0;

/** Each reads the whole file in one go: seconds for some hundred megabytes, in which nothing else of this process happens. */
const DEEP_CHECKS: readonly QueueCheck[] = [atOnce("integrity", integrity), atOnce("foreign_key", foreignKeys)];

const WHOLE_CHECKS: readonly QueueCheck[] = [
  { name: "idempotency", steps: orphanedKeys },
  { name: "counters", steps: counters },
];

/** In the order in which a repair has to go: indexes before what is found by them, attempts before leases, segments before the positions in them. */
const JOB_CHECKS: readonly RangeCheck[] = [
  ofJobs("job_index", null, jobIndexes),
  { name: "record", steps: records },
  { name: "task_event", steps: taskTimelines },
  { name: "progress, artifacts", steps: recordSequences },
  ofAttempts("attempt", "attempts", attempts),
  ofAttempts("lease", "leases", leases),
  ofJobs("task", "tasks", taskStates),
  ofAttempts("scheduler_job", "scheduler_jobs", schedulerRecords),
  ofJobs("idempotency", null, idempotencyKeys),
  { name: "used_artifact", steps: usedArtifactEdges },
  { name: "transform", steps: transformRecords },
  ofAttempts("segment", "segments", segmentBases),
  { name: "event", steps: events },
  ofAttempts("log_kept", null, keptBytes),
];

/**
 * Every damage there is, up to one more than a report lists. A check that cannot be made is damage too, and keeps no other from being made.
 *
 * @param tally is told how many rows of each table were looked at; fewer than none where they are looked at once more
 */
export async function findDamage(read: Read, { deep }: CheckDepth, tally: Tally = () => undefined): Promise<Damage[]> {
  const found: Damage[] = [];
  for (const { name, steps } of deep ? [...DEEP_CHECKS, ...WHOLE_CHECKS] : WHOLE_CHECKS) {
    const failure = await make(read, (r) => steps(r, new Budget(), tally), found);
    if (failure !== null) found.push(cannotBeMade(name, "queue.db", failure));
  }
  const last = await lastJob(read, found);
  await turn();
  for (let from = 1; from <= last && found.length <= FINDINGS_MAX; from += RANGE) {
    for (const check of JOB_CHECKS) await makeFor(read, check, { from, to: Math.min(last, from + RANGE - 1) }, tally, found);
  }
  return found;
}

/** The jobs of a range in which a check fails are looked at one by one, so that one hides no other. */
async function makeFor(read: Read, check: RangeCheck, range: Range, tally: Tally, found: Damage[]): Promise<void> {
  const before = found.length;
  const looked: [string, number][] = [];
  const count: Tally = (table, rows) => {
    looked.push([table, rows]);
    tally(table, rows);
  };
  const failure = await make(read, (r) => check.steps(r, new Budget(), range, count), found);
  if (failure === null) return;
  if (range.from === range.to) {
    found.push(cannotBeMade(check.name, `job ${range.from}`, failure));
  } else {
    found.length = before;
    for (const [table, rows] of looked) tally(table, -rows);
    for (let job = range.from; job <= range.to && found.length <= FINDINGS_MAX; job++) {
      await makeFor(read, check, { from: job, to: job }, tally, found);
    }
  }
}

/** Make a check step by step; returns why it could not be made to its end, or null. */
async function make(read: Read, steps: (r: Reading) => Steps, found: Damage[]): Promise<string | null> {
  let begun: Iterator<Damage | null> | null = null;
  for (;;) {
    try {
      const ended = await read((r) => {
        begun ??= steps(r)[Symbol.iterator]();
        return step(begun, found);
      });
      if (ended) return null;
    } catch (error) {
      if (isRelayError(error, "shutting_down")) throw error;
      return reasonOf(error);
    } finally {
      await turn();
    }
  }
}

/** Whether that was the last step. */
function step(steps: Iterator<Damage | null>, found: Damage[]): boolean {
  for (;;) {
    const next = steps.next();
    if (next.done) return true;
    if (next.value === null) return false;
    found.push(next.value);
  }
}

/** The highest sequence of a job. Where the table cannot say, the counter that numbers are taken from does. */
async function lastJob(read: Read, found: Damage[]): Promise<number> {
  for (const sql of ["SELECT max(sequence) AS last FROM jobs", "SELECT seq AS last FROM sqlite_sequence WHERE name = 'jobs'"]) {
    try {
      return await read((r) => r.sql.get<{ last: number | null }>(sql)?.last ?? 0);
    } catch (error) {
      if (isRelayError(error, "shutting_down")) throw error;
      found.push(cannotBeMade("jobs", "queue.db", reasonOf(error)));
    }
  }
  return 0;
}

const cannotBeMade = (name: string, subject: string, failure: string): Damage => ({
  check: "check_failed",
  subject,
  detail: `the check ${name} cannot be made: ${failure}`,
  mend: null,
});

/** What an error says of itself and of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
