import { LIMITS } from "../domain/limits.ts";
import { whole } from "./values.ts";
import { optionOr } from "./verb.ts";

/** Options of every verb that prints a page. */
export const PAGE = {
  cursor: optionOr(whole(1, Number.MAX_SAFE_INTEGER), 1, "Number of the first entry"),
  limit: optionOr(whole(1, LIMITS.pageMax), LIMITS.pageDefault, "Entries at most"),
} as const;

/** Says on standard error that a page was not all. */
export async function noteRest(
  stderr: { write(text: string): Promise<void> },
  page: { readonly next_cursor: number; readonly total: number },
): Promise<void> {
  const left = page.total - (page.next_cursor - 1);
  if (left > 0) await stderr.write(`${left} more: --cursor ${page.next_cursor}\n`);
}
