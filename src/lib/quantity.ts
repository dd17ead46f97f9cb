const SECONDS: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3_600, d: 86_400 };
const BYTES: Readonly<Record<string, number>> = { "": 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** Seconds of `45s`, `30m`, `2h`, `1d` or a bare number of seconds; null when it is none of these, or not above zero. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)([smhd]?)$/.exec(text);
  const seconds = match === null ? 0 : Number(match[1]) * SECONDS[match[2]!]!;
  return seconds > 0 ? seconds : null;
}

/** Bytes of `64MiB`, `1GiB`, `512KiB` or a bare number of bytes; null when it is none of these, or too large to be exact. */
export function parseBytes(text: string): number | null {
  const match = /^(\d{1,16})(|KiB|MiB|GiB|TiB)$/.exec(text);
  const bytes = match === null ? Number.NaN : Number(match[1]) * BYTES[match[2]!]!;
  return Number.isSafeInteger(bytes) ? bytes : null;
}

/** A whole number in decimal digits; null for anything else (signs, exponents, white space included). */
export function parseWhole(text: string): number | null {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : null;
}

/** A finite decimal number such as `-2.5`; null for anything else (hexadecimal, white space, empty included). */
export function parseDecimal(text: string): number | null {
  const value = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : null;
}
