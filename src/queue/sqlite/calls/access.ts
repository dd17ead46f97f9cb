import type { Reading, Writing } from "../access.ts";
import type { WriteOptions } from "../committer.ts";

/** The two ways to the rows. Every promise settles with a value or a RelayError, whatever the function throws. */
export interface Calls {
  /** Runs at once, between two transactions. */
  read<T>(fn: (r: Reading) => T): Promise<T>;
  /** Runs in the next transaction; settles after its commit. */
  write<T>(fn: (w: Writing) => T, options?: WriteOptions): Promise<T>;
}
