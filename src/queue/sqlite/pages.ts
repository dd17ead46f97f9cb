import type { Page } from "../../domain/page.ts";
import type { PageRequest } from "../store.ts";

/** Text of rows, in bytes of UTF-8, that a page holds: records are bounded, and so is what hundreds of them take together. */
const PAGE_BYTES = 4 * 1024 * 1024;

/**
 * How many of the rows, whose sizes are given in order, make a page. One is always among them, so that who pages gets on. The sizes are
 * asked for by octet_length, for which SQLite does not read the text.
 */
export function rowsOfPage(sizes: readonly { readonly bytes: number }[], maxBytes: number = PAGE_BYTES): number {
  let total = 0;
  const over = sizes.findIndex(({ bytes }, index) => {
    total += bytes;
    return index > 0 && total > maxBytes;
  });
  return over === -1 ? sizes.length : over;
}

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
