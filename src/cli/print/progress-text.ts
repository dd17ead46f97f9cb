import type { Progress } from "../../domain/progress.ts";
import { numberText } from "./quantities.ts";

type Report = Pick<Progress, "label" | "current" | "total" | "unit" | "message">;

/** Share of the work that is done, for a bar: between 0 and 1; null when the report does not say. */
export const shareOf = ({ current, total }: Report): number | null =>
  current === null || total === null ? null : Math.min(1, Math.max(0, current / total));

/** Percent as reported: what a bar has no room for, more than all, is said all the same. */
const percentText = ({ current, total }: Report): string | null =>
  current === null || total === null ? null : `${Math.floor((current / total) * 100)}%`;

/** `epoch 3/10 steps (30%) warming up` */
export function progressText(report: Report): string {
  const percent = percentText(report);
  return joined([report.label, countText(report), percent === null ? null : `(${percent})`, report.message]);
}

/** The same for a line that is cut off behind: what changes comes first. `[###-------] 30% 3/10 steps epoch warming up` */
export function progressLine(report: Report, cells: number): string {
  const share = shareOf(report);
  const bar = share === null ? null : `${progressBar(share, cells)} ${percentText(report)}`;
  return joined([bar, countText(report), report.label, report.message]);
}

const countText = ({ current, total, unit }: Report): string | null =>
  current === null ? null : `${numberText(current)}${total === null ? "" : `/${numberText(total)}`}${unit === null ? "" : ` ${unit}`}`;

const joined = (parts: readonly (string | null)[]): string => parts.filter((part) => part !== null && part !== "").join(" ");

/** `[######----]`, in so many cells. */
export function progressBar(share: number, cells: number): string {
  const full = Math.floor(share * cells);
  return `[${"#".repeat(full)}${"-".repeat(cells - full)}]`;
}
