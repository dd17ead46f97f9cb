import { RelayError } from "../../domain/errors.ts";

/** JSON text of a column. Larger than `maxBytes` of UTF-8 is refused as payload_too_large, saying of what. */
export function boundedJson(value: unknown, maxBytes: number, what: string): string {
  const text = JSON.stringify(value);
  // A UTF-16 unit takes at most three bytes of UTF-8.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) {
    throw new RelayError("payload_too_large", `${what} takes more than ${maxBytes} bytes`, { limit_bytes: maxBytes });
  }
  return text;
}

/** Text of at most `max` UTF-16 units that SQLite stores and gives back unchanged: lone surrogates become U+FFFD. */
export function storable(text: string, max = Number.POSITIVE_INFINITY): string {
  return (text.length > max ? `${text.slice(0, max - 1)}…` : text).toWellFormed();
}

/** A JSON column as a value. Text that is not JSON is queue_corrupt. */
export function parsed<T>(text: string, subject: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new RelayError("queue_corrupt", `the record of ${subject} cannot be read`, { subject }, undefined, { cause: error });
  }
}

export const parsedOrNull = <T>(text: string | null, subject: string): T | null => (text === null ? null : parsed<T>(text, subject));
