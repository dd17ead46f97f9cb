import { LIMITS } from "../domain/limits.ts";
import { whole } from "./values.ts";
import { optionOr } from "./verb.ts";

/** Options of every verb that prints a page. */
export const PAGE = {
  cursor: optionOr(whole(1, Number.MAX_SAFE_INTEGER), 1, "Number of the first entry"),
  limit: optionOr(whole(1, LIMITS.pageMax), LIMITS.pageDefault, "Entries at most"),
} as const;

/** What is said of a page without entries. @param words of one that begins at the first */
export const noneFrom = (cursor: number, words: string): string => (cursor === 1 ? words : `there is none from number ${cursor} on`);

/** What is said of a page that was not all. */
export function restOf(page: { readonly next_cursor: number; readonly total: number }): string | null {
  const left = page.total - (page.next_cursor - 1);
  return left > 0 ? `${left} more: --cursor ${page.next_cursor}` : null;
}
