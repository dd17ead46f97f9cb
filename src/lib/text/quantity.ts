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

const SLURM_BYTES: Readonly<Record<string, number>> = { "": 2 ** 20, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/**
 * Bytes of memory as users of SLURM write it (sbatch(1), --mem): `4G`, `512M`, a bare number of mebibytes; or as parseBytes with a unit. Null when it is none of
 * these, nothing, or too large to be exact.
 */
export function parseMemory(text: string): number | null {
  const match = /^(\d{1,16})([KMGT]?)$/i.exec(text);
  const bytes = match === null ? parseBytes(text) : Number(match[1]) * SLURM_BYTES[match[2]!.toUpperCase()]!;
  return bytes !== null && bytes > 0 && Number.isSafeInteger(bytes) ? bytes : null;
}

/** Days, hours, minutes and seconds by their places: `D-H:M:S`, `D-H:M`, `D-H`, `H:M:S`, `M:S`, `M`. */
const WALL_TIMES = [
  /^(?<d>\d{1,5})-(?<h>\d{1,6})(?::(?<m>\d{1,2})(?::(?<s>\d{1,2}))?)?$/,
  /^(?<h>\d{1,6}):(?<m>\d{1,2}):(?<s>\d{1,2})$/,
  /^(?<m>\d{1,8})(?::(?<s>\d{1,2}))?$/,
] as const;

/**
 * Seconds of a time limit as users of SLURM write it (sbatch(1), --time): `1-12:00:00`, `1-12`, `02:30:00`, `30:00`, a bare number of minutes; or as parseDuration
 * with a unit, such as `2h`. Null when it is none of these, or no time at all.
 */
export function parseWallTime(text: string): number | null {
  for (const form of WALL_TIMES) {
    const places = form.exec(text)?.groups;
    if (places === undefined) continue;
    const [d, h, m, s] = ["d", "h", "m", "s"].map((place) => Number(places[place] ?? 0)) as [number, number, number, number];
    const seconds = ((d * 24 + h) * 60 + m) * 60 + s;
    return seconds > 0 ? seconds : null;
  }
  const seconds = /[smhd]$/.test(text) ? parseDuration(text) : null;
  return seconds === null ? null : Math.ceil(seconds);
}

/** Seconds as parseWallTime reads them: `1-02:03:04`, `02:03:04`. */
export function wallTimeText(seconds: number): string {
  const [s, m, h, d] = [seconds % 60, Math.floor(seconds / 60) % 60, Math.floor(seconds / 3_600) % 24, Math.floor(seconds / 86_400)];
  const time = [h, m, s].map((part) => String(part).padStart(2, "0")).join(":");
  return d === 0 ? time : `${d}-${time}`;
}
