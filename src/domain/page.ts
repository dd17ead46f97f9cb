import * as v from "valibot";
import { LIMITS } from "./limits.ts";
import { Count, Sequence } from "./primitives.ts";
import { whole } from "./query.ts";

/** Position and size of a page; a cursor is the sequence number of the page's first entry. */
export const PageQuery = v.strictObject({
  cursor: v.optional(whole(1), "1"),
  limit: v.optional(whole(1, LIMITS.pageMax), String(LIMITS.pageDefault)),
});
export type PageQuery = v.InferOutput<typeof PageQuery>;

/** A page of `items` under the plural name of what it lists. next_cursor is always a number, also at the end. */
export const pageOf = <K extends string, S extends v.GenericSchema>(key: K, item: S) =>
  v.strictObject({
    ...({ [key]: v.array(item) } as Record<K, v.ArraySchema<S, undefined>>),
    cursor: Sequence,
    limit: Sequence,
    /** Where to go on. Equal to one past the last entry, also when nothing follows yet. */
    next_cursor: Sequence,
    /** Entries in all. */
    total: Count,
  });

/** What the store returns for a page, before it is named. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly cursor: number;
  readonly limit: number;
  readonly next_cursor: number;
  readonly total: number;
}
