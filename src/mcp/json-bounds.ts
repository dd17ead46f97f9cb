import { RelayError } from "../domain/errors.ts";

/** What a client's JSON has at most. */
export const JSON_BOUNDS = {
  /** One message. */
  messageBytes: 1024 * 1024,
  /** The arguments of one call. */
  argumentBytes: 512 * 1024,
  /** One round of answers to what a task asks for. */
  roundBytes: 256 * 1024,
  depth: 64,
  values: 100_000,
} as const;

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
export function tooMuch(bytes: Uint8Array): string | null {
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
      if (++depth > JSON_BOUNDS.depth) return `it is nested deeper than ${JSON_BOUNDS.depth} levels`;
    } else if (CLOSING.has(byte)) depth--;
    if (values > JSON_BOUNDS.values) return `it has more than ${JSON_BOUNDS.values} values`;
  }
  return null;
}

/** @throws RelayError payload_too_large where a value takes more than `max` bytes as JSON */
export function refuseLarge(value: unknown, max: number, what: string): void {
  const size = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (size > max)
    throw new RelayError("payload_too_large", `${what} take ${size} bytes, and may take ${max}`, { size_bytes: size, max_bytes: max });
}
