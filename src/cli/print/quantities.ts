/** Seconds in the two largest units that matter: `1h 04m`, `12s`, `0.4s`. */
export function durationText(seconds: number): string {
  const tenths = Math.max(0, Math.round(seconds * 10));
  if (tenths < 100) return `${(tenths / 10).toFixed(1)}s`;
  const whole = Math.round(seconds);
  const [d, h, m, s] = [Math.floor(whole / 86_400), Math.floor(whole / 3_600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  if (d > 0) return `${d}d ${two(h)}h`;
  if (h > 0) return `${h}h ${two(m)}m`;
  return m > 0 ? `${m}m ${two(s)}s` : `${s}s`;
}

/** Time since an instant, for people. */
export const agoText = (instant: string, now: number): string => `${durationText(Math.max(0, (now - Date.parse(instant)) / 1_000))} ago`;

/** An instant in a table: how long ago where somebody looks at it, itself elsewhere. */
export const instantCell = (output: { readonly isTerminal: boolean }, instant: string | null, now: number): string | null =>
  instant !== null && output.isTerminal ? agoText(instant, now) : instant;

/** Bytes with a binary unit: `312 B`, `1.4 MiB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 2 ** (10 * at);
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

/** A number as people write it: at most three decimals. */
export const numberText = (value: number): string => String(Math.round(value * 1_000) / 1_000);
