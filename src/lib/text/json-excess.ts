const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/**
 * What is too much about a JSON text, before it is parsed: a parser recurses. Says nothing of whether it is JSON.
 *
 * @returns null where nothing is
 */
export function jsonExcess(bytes: Uint8Array, bounds: { readonly depth: number; readonly values: number }): string | null {
  let depth = 0;
  let values = 0;
  let quoted = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (quoted) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) quoted = false;
    } else if (byte === QUOTE) quoted = true;
    else if (byte === COMMA) values++;
    else if (OPENING.has(byte)) {
      values++;
      if (++depth > bounds.depth) return `it is nested deeper than ${bounds.depth} levels`;
    } else if (CLOSING.has(byte)) depth--;
    if (values > bounds.values) return `it has more than ${bounds.values} values`;
  }
  return null;
}
