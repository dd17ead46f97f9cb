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

/** Looks at some jobs at a time, so that the queue goes on in between. */
export type JobCheck = (r: Reading, range: Range) => Damage[];

/** Looks at what belongs to no single job. */
export type WholeCheck = (r: Reading) => Damage[];

export const toFinding = ({ check, subject, detail, mend }: Damage): Finding => ({ check, subject, detail, repairable: mend !== null });
