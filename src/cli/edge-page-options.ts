import { LIMITS } from "../domain/limits.ts";
import { type Reader, whole } from "./values.ts";
import { option, optionOr } from "./verb.ts";

const cursor: Reader<string> = {
  label: "CURSOR",
  form: "a cursor that another page ended with",
  read: (given) => (/^edge_\d{20}$/.test(given) ? given : undefined),
  suggests: null,
};

/** Options of verbs that print a page of edges. */
export const EDGE_PAGE = {
  cursor: option(cursor, "Where a page before ended"),
  limit: optionOr(whole(1, LIMITS.pageMax), LIMITS.pageDefault, "Entries at most"),
} as const;

interface EdgePage {
  readonly next_cursor: string;
  readonly total: number;
}

/** What is said of a page that was not all; of one that began in the middle, only where to go on. */
export function moreOf(page: EdgePage, { shown, begun }: { readonly shown: number; readonly begun: string | undefined }): string | null {
  const left = page.total - shown;
  if (left <= 0 || shown === 0) return null;
  return `${begun === undefined ? `${left} more` : "more, if there are any"}: --cursor ${page.next_cursor}`;
}
