/** Bytes [start, end) of content that has `total`. */
export interface ContentRange {
  readonly start: number;
  readonly end: number;
  readonly total: number;
}

/** Content-Range of an answer that carries one part (RFC 9110, section 14.4); null for anything else. */
export function parseContentRange(value: string | null): ContentRange | null {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(value ?? "");
  if (match === null) return null;
  const [start, last, total] = [Number(match[1]), Number(match[2]), Number(match[3])];
  return start <= last && last < total ? { start, end: last + 1, total } : null;
}

/** From a byte up to an end. */
export const rangeFrom = (start: number, end: number): string => `bytes=${start}-${end - 1}`;

/** A strong entity tag (RFC 9110, section 8.8.3), or null. */
export const strongTag = (value: string | null): string | null => (value !== null && /^"[\x21\x23-\x7e]*"$/.test(value) ? value : null);

/** The SHA-256 that an entity tag consists of, as 64 hexadecimal digits, or null. */
export const digestOfTag = (tag: string | null): string | null => /^"([0-9a-f]{64})"$/.exec(tag ?? "")?.[1] ?? null;
