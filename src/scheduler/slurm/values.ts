/** How SLURM's commands write values, with TZ=UTC in their environment. */

/** `2026-11-30T15:47:55` as an instant with milliseconds; null for `N/A`, `Unknown`, `None`, and whatever else is none. */
export function instant(text: string | undefined): string | null {
  if (text === undefined || !/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$/.test(text)) return null;
  const at = Date.parse(`${text}Z`);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** `[days-][hours:]minutes:seconds`, or `days-hours`, in seconds; null for `UNLIMITED`, `NOT_SET`, `INVALID` and the like. */
export function seconds(text: string | undefined): number | null {
  const match = /^(?:(\d{1,6})-)?(\d{1,6})(?::(\d{2}))?(?::(\d{2}))?(?:\.\d+)?$/.exec(text ?? "");
  if (match === null) return null;
  const [, days, ...parts] = match;
  const [a, b, c] = parts.map((part) => (part === undefined ? null : Number(part)));
  const day = Number(days ?? 0) * 86_400;
  if (c != null) return day + a! * 3_600 + b! * 60 + c;
  if (b != null) return days === undefined ? a! * 60 + b : day + a! * 3_600 + b * 60;
  return days === undefined ? a! * 60 : day + a! * 3_600;
}

/** `code:signal` of sacct and scontrol. */
export function exitCode(text: string | undefined): { readonly exit_code: number | null; readonly signal: number | null } {
  const match = /^(\d{1,5}):(\d{1,5})$/.exec(text ?? "");
  if (match === null) return { exit_code: null, signal: null };
  const signal = Number(match[2]);
  return { exit_code: Number(match[1]), signal: signal === 0 ? null : signal };
}

/** Ways in which SLURM says that there is nothing. */
export const NOTHING = ["(null)", "N/A", "n/a", "Unknown", "None", "NONE", "None assigned", "None Assigned"];
