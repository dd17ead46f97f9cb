import type { SchedulerPhase, SchedulerStatus } from "../domain/scheduler.ts";
import { fits, type RowNames } from "./elements.ts";
import { isEnd } from "./phases.ts";

/** What one source says of one job. */
export interface Row extends RowNames {
  readonly name: string;
  readonly phase: SchedulerPhase;
  /** Which queue it waits in, and when it was submitted, as texts that can be compared. */
  readonly queue: string;
  readonly submitted: string;
  /** All that is said of it. Made when it is asked for: most rows of a site are somebody else's. */
  readonly answers: Partial<SchedulerStatus>;
}

/** Which of several rows stands for an array, or for a job that several clusters of a federation know. */
const RANK: readonly SchedulerPhase[] = ["running", "allocated", "pending", "submitted", "failed", "canceled", "completed", "unknown"];

/** Rows by job number, so that each of many ids is found at once. */
export class Rows {
  readonly #byNumber = new Map<string, Row[]>();

  constructor(readonly all: readonly Row[]) {
    for (const row of all) {
      this.#add(row.raw, row);
      if (row.shown === row.raw) continue;
      const number = row.shown.replace(/[_+].*$/, "");
      if (number !== row.raw) this.#add(number, row);
    }
  }

  #add(number: string, row: Row): void {
    const there = this.#byNumber.get(number);
    if (there === undefined) this.#byNumber.set(number, [row]);
    else there.push(row);
  }

  /** The row that says most of an id. */
  of(id: string): Row | null {
    const near = this.#byNumber.get(id.replace(/[_+].*$/, "")) ?? [];
    const rated = near.map((row) => ({ row, fit: fits(id, row) })).filter(({ fit }) => fit > 0);
    const best = Math.max(0, ...rated.map(({ fit }) => fit));
    const first = rated.filter(({ fit }) => fit === best).sort((a, b) => RANK.indexOf(a.row.phase) - RANK.indexOf(b.row.phase))[0];
    return first?.row ?? null;
  }
}

/** Whether a row says that the job is still to run, or runs. */
export const isActive = ({ phase }: Row): boolean => !isEnd(phase) && phase !== "unknown";
