/** Rows that one step of a check reads. */
export const STEP_ROWS = 500;
/** Text that one step of a check parses, in bytes. A single longer text is a step of its own. */
export const STEP_BYTES = 256 * 1024;

/** What is left of a step. */
export class Budget {
  #rows = STEP_ROWS;
  #bytes = STEP_BYTES;

  get rows(): number {
    return this.#rows;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get spent(): boolean {
    return this.#rows <= 0 || this.#bytes <= 0;
  }

  /** A look that finds nothing costs as much as a row. */
  take(rows: number, bytes = 0): void {
    this.#rows -= Math.max(1, rows);
    this.#bytes -= bytes;
  }

  /** The next step begins. */
  renew(): void {
    this.#rows = STEP_ROWS;
    this.#bytes = STEP_BYTES;
  }
}

/** Rows that are numbered from 1 in one sequence. */
export interface Numbered {
  readonly n: number;
  readonly low: number;
  readonly high: number;
}

/** Some of them, in order. */
export interface NumberedPage extends Numbered {
  /** Whether there are no more. */
  readonly last: boolean;
}

/** Numbers lie above it, damaged ones too. */
export const BEFORE_ALL = Number.MIN_SAFE_INTEGER;

/**
 * Go through the rows of one sequence, in as many steps as they take. Rows that are added meanwhile are seen; the last row was read in the step in
 * which it returns.
 *
 * @param page the rows with numbers above `after`, at most `limit` of them
 */
export function* walk(budget: Budget, page: (after: number, limit: number) => NumberedPage): Generator<null, Numbered> {
  let whole: Numbered = { n: 0, low: 1, high: 0 };
  for (let after = BEFORE_ALL; ; ) {
    if (budget.spent) {
      budget.renew();
      yield null;
    }
    const { n, low, high, last } = page(after, budget.rows);
    budget.take(n);
    if (n > 0) whole = { n: whole.n + n, low: whole.n === 0 ? low : whole.low, high };
    if (last) return whole;
    after = high;
  }
}
