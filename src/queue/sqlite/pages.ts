import type { Page } from "../../domain/page.ts";
import type { PageRequest } from "../store.ts";

/** Text of rows, in bytes of UTF-8, that a page holds: records are bounded, and so is what hundreds of them take together. */
const PAGE_BYTES = 4 * 1024 * 1024;

/**
 * How many of the rows, whose sizes are given in order, make a page. One is always among them, so that who pages gets on. The sizes are
 * asked for by octet_length, so that no text of the others gets into memory.
 */
export function rowsOfPage(sizes: readonly { readonly bytes: number }[], maxBytes: number = PAGE_BYTES): number {
  let total = 0;
  const over = sizes.findIndex(({ bytes }, index) => {
    total += bytes;
    return index > 0 && total > maxBytes;
  });
  return over === -1 ? sizes.length : over;
}

/** How many rows are read first where their size is not known. */
const FIRST_ROWS = 2;

/**
 * The rows of a page, read a few at a time: in a table without rowids SQLite reads all of each row that it steps over, so that asking for the sizes of hundreds costs
 * as much as reading them.
 *
 * @param read so many rows from a position on, in order
 */
export function rowsWithin<Row>(
  { cursor, limit, maxBytes = PAGE_BYTES }: PageRequest,
  read: (from: number, limit: number) => readonly Row[],
  positionOf: (row: Row) => number,
  bytesOf: (row: Row) => number,
): Row[] {
  const rows: Row[] = [];
  let total = 0;
  let from = cursor;
  for (let some = FIRST_ROWS; rows.length < limit; some *= 2) {
    const asked = Math.min(some, limit - rows.length);
    const found = read(from, asked);
    for (const row of found) {
      total += bytesOf(row);
      if (rows.length > 0 && total > maxBytes) return rows;
      rows.push(row);
    }
    if (found.length < asked) break;
    from = positionOf(rows.at(-1)!) + 1;
  }
  return rows;
}

/** Bytes of a row's texts, in UTF-8. */
export const textBytes = (...texts: readonly (string | null)[]): number =>
  texts.reduce((sum, text) => sum + (text === null ? 0 : Buffer.byteLength(text)), 0);

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
