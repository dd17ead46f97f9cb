import type { Page } from "../../domain/page.ts";
import type { PageRequest } from "../store.ts";

/** A page of rows that were read from `page.cursor` on, in order. */
export function pageOf<Row, T>(
  rows: readonly Row[],
  positionOf: (row: Row) => number,
  toRecord: (row: Row) => T,
  page: PageRequest,
  total: number,
): Page<T> {
  const last = rows.at(-1);
  return {
    items: rows.map(toRecord),
    cursor: page.cursor,
    limit: page.limit,
    next_cursor: last === undefined ? page.cursor : positionOf(last) + 1,
    total,
  };
}
