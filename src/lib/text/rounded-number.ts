/** Integers of fewer digits are below 2^53, and a double has each of them (IEEE 754, binary64). */
const LONG = /\d{16}/;

interface Source {
  readonly source?: string;
}

/**
 * The first integer of a JSON text that a parser into doubles makes another one, such as 9007199254740993: an id, or nanoseconds. One that some program has written from a double
 * comes back as it was, and is none.
 *
 * @param text JSON
 * @returns the integer as it was written, with the name of the member or the index where it stands; null where there is none
 */
export function roundedNumber(text: string): { readonly name: string; readonly source: string } | null {
  if (!LONG.test(text)) return null;
  let found: { readonly name: string; readonly source: string } | null = null;
  // JSON.parse tells what a number was parsed from (ECMA-262, JSON.parse source text access); texts have none that is digits only.
  JSON.parse(text, ((name: string, value: unknown, { source }: Source = {}) => {
    if (found === null && typeof value === "number" && source !== undefined && isRounded(value, source)) found = { name, source };
    return value;
  }) as (this: unknown, key: string, value: unknown) => unknown);
  return found;
}

const isRounded = (value: number, source: string): boolean =>
  /^-?\d+$/.test(source) && String(value) !== source && Number.isFinite(value) && BigInt(value) !== BigInt(source);

/** What is said of one. */
export const wouldRound = ({ name, source }: { readonly name: string; readonly source: string }): string =>
  `${name === "" ? "" : `${name}: `}${source.slice(0, 64)} is an integer beyond 2^53, which would be rounded on its way; give it as a text, in quotes, where a text is taken`;
