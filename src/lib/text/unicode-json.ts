/** A lone half of a surrogate pair, as JSON.stringify writes it (ECMA-262, QuoteJSONString), or a backslash in a text, which may stand before what looks like one. */
const LONE = /\\\\|\\ud[89a-f][0-9a-f]{2}/g;

/**
 * A JSON value whose texts and names are Unicode, with U+FFFD for each lone half of a surrogate pair. JSON can write such a half (RFC 8259, section 8.2), and programs do that have
 * read a name which is no UTF-8; parsers in other languages refuse the whole document over it.
 *
 * @returns the value itself where there is none
 */
export function inUnicode<T>(value: T): T {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined || !text.includes("\\ud")) return value;
  const plain = text.replaceAll(LONE, (found) => (found === "\\\\" ? found : "\uFFFD"));
  return plain === text ? value : (JSON.parse(plain) as T);
}

/** An escape that may be the half of a surrogate pair; text that was decoded from UTF-8 has none otherwise. */
const HALF = /\\u[dD][89a-fA-F]/;

/** The same of a value that was parsed from this text, which is asked first: most have no such escape, and cost no more then. */
export const parsedInUnicode = <T>(value: T, text: string): T => (HALF.test(text) ? inUnicode(value) : value);
