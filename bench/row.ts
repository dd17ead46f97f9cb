/** What a row may use. */
export interface BenchContext {
  /** The built executable. */
  readonly executable: string;
  /** The Bun that runs the benchmark and compiles what a yardstick needs. */
  readonly bun: string;
  /** An empty directory on the disk that is measured; one per row, removed afterwards. */
  readonly directory: string;
  /** How much of the usual number of repetitions to do: 1 is all. For `count = Math.ceil(1000 * scale)`. */
  readonly scale: number;
  /** Print a line about what goes on. */
  note(line: string): void;
}

/** What ours has to reach. Values are in the result's unit. */
export type Target =
  /** ours / yardstick, for what should be high. */
  | { readonly ratioAtLeast: number }
  /** ours / yardstick, for what should be low; perhaps with an upper bound besides. */
  | { readonly ratioAtMost: number; readonly atMost?: number }
  /** ours - yardstick. */
  | { readonly overYardstickAtMost: number }
  | { readonly atMost: number }
  | { readonly atLeast: number };

/** One line of the table. */
export interface Result {
  readonly name: string;
  readonly unit: string;
  /** The same work without the relay, measured in the same run; null where the target is a number by itself. */
  readonly yardstick: { readonly name: string; readonly value: number } | null;
  readonly ours: number;
  /** Null for a line that only informs. */
  readonly target: Target | null;
}

/** A module of bench/rows exports one of these as `row`. */
export interface Row {
  /** By which it is chosen on the command line. */
  readonly name: string;
  run(context: BenchContext): Promise<readonly Result[]>;
}

/** ours / yardstick; null without a yardstick. */
export const ratioOf = ({ ours, yardstick }: Result): number | null => (yardstick === null ? null : ours / yardstick.value);

/** Whether the target is reached; null where there is none. A value that is no number reaches nothing. */
export function reached(result: Result): boolean | null {
  const { target, ours, yardstick } = result;
  if (target === null) return null;
  if (!Number.isFinite(ours)) return false;
  if ("atLeast" in target) return ours >= target.atLeast;
  if ("overYardstickAtMost" in target) return yardstick !== null && ours - yardstick.value <= target.overYardstickAtMost;
  if ("ratioAtLeast" in target) return (ratioOf(result) ?? Number.NEGATIVE_INFINITY) >= target.ratioAtLeast;
  if ("ratioAtMost" in target) {
    return (ratioOf(result) ?? Number.POSITIVE_INFINITY) <= target.ratioAtMost && ours <= (target.atMost ?? Number.POSITIVE_INFINITY);
  }
  return ours <= target.atMost;
}
