import { JOB_KINDS, type JobKind, type JobState } from "../../domain/job.ts";
import { isTerminal } from "../../domain/transitions.ts";
import type { Statements } from "./statements.ts";

const TOTAL = 0;
const ACTIVE = 1;
const QUEUED = 2;

/** Numbers that every submission needs and that SQL could only count row by row. Kept in step by whoever writes jobs. */
export class Counts {
  #numbers = new Float64Array(QUEUED + JOB_KINDS.length);

  /** Jobs in all. */
  get total(): number {
    return this.#numbers[TOTAL]!;
  }

  /** Jobs that have not ended. */
  get active(): number {
    return this.#numbers[ACTIVE]!;
  }

  /** Queued jobs of a kind, delayed and quarantined ones included. */
  queued(kind: JobKind): number {
    return this.#numbers[QUEUED + JOB_KINDS.indexOf(kind)]!;
  }

  /** A job of this kind was added in state queued. */
  added(kind: JobKind): void {
    this.#add(TOTAL, 1);
    this.#add(ACTIVE, 1);
    this.#add(QUEUED + JOB_KINDS.indexOf(kind), 1);
  }

  moved(kind: JobKind, from: JobState, to: JobState): void {
    const queued = QUEUED + JOB_KINDS.indexOf(kind);
    if (from === "queued") this.#add(queued, -1);
    if (to === "queued") this.#add(queued, 1);
    if (isTerminal(to) && !isTerminal(from)) this.#add(ACTIVE, -1);
  }

  /** What `restore` takes to undo everything since. */
  snapshot(): Float64Array {
    return this.#numbers.slice();
  }

  restore(snapshot: Float64Array): void {
    this.#numbers.set(snapshot);
  }

  /** Count what the tables hold. */
  read(sql: Statements): void {
    this.restore(Counts.inTables(sql));
  }

  /** Whether the numbers of jobs that have not ended are those of the tables. */
  activeAgree(sql: Statements): boolean {
    return Counts.inTables(sql, this.total).every((number, index) => number === this.#numbers[index]);
  }

  static inTables(sql: Statements, total: number = totalOf(sql)): Float64Array {
    const numbers = new Float64Array(QUEUED + JOB_KINDS.length);
    numbers[TOTAL] = total;
    const rows = sql.all<{ kind: JobKind; state: JobState; n: number }>(
      "SELECT kind, state, count(*) AS n FROM jobs WHERE state IN ('queued', 'leased', 'running') GROUP BY kind, state",
    );
    for (const { kind, state, n } of rows) {
      numbers[ACTIVE] = numbers[ACTIVE]! + n;
      if (state === "queued") numbers[QUEUED + JOB_KINDS.indexOf(kind)] = n;
    }
    return numbers;
  }

  #add(index: number, delta: number): void {
    this.#numbers[index] = this.#numbers[index]! + delta;
  }
}

const totalOf = (sql: Statements): number => sql.get<{ n: number }>("SELECT count(*) AS n FROM jobs")?.n ?? 0;
