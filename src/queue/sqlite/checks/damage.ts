import type { Finding } from "../../store.ts";
import type { Reading, Writing } from "../access.ts";

/** Something that is wrong, with the way to put it right where there is one. */
export interface Damage {
  readonly check: string;
  readonly subject: string;
  readonly detail: string;
  /** Derives what is right anew when it runs: the queue may have changed since it was found. Null when nothing can be derived. */
  readonly mend: ((w: Writing) => void) | null;
}

/** Jobs by sequence, both ends included. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Looks at what some jobs have few rows of, in one go. */
export type JobCheck = (r: Reading, range: Range) => Damage[];

/** Looks at what belongs to no single job, in one go. */
export type WholeCheck = (r: Reading) => Damage[];

/** Counts the rows that were looked at, by table. */
export type Tally = (table: string, rows: number) => void;

/**
 * What a check finds, with a null wherever a step is over and the queue's other work gets its turn. A step reads a bounded number of rows
 * (budget.ts); what was read before it may have changed.
 */
export type Steps = Iterable<Damage | null>;

export const toFinding = ({ check, subject, detail, mend }: Damage): Finding => ({ check, subject, detail, repairable: mend !== null });

const HELD = "left, because this worker looks after the attempt: stop it, then repair";

/**
 * Damage whose mending changes what an attempt holds: its row, its number, its lease, its place in the log. It is left alone while somebody in this
 * process looks after an attempt of the job, which goes by what it was given.
 */
export function unlessHeld(r: Reading, jobId: string, damage: Damage, held = HELD): Damage {
  const { mend } = damage;
  if (mend === null) return damage;
  if (r.held.has(jobId)) return { ...damage, detail: `${damage.detail}; ${held}`, mend: null };
  return {
    ...damage,
    mend: (w) => {
      // It may have been claimed since it was found; the next round says so.
      if (!w.held.has(jobId)) mend(w);
    },
  };
}
