import { type Result, ratioOf, reached, type Target } from "./row.ts";

/** A number with three significant digits or more, thousands apart. */
export function readable(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toPrecision(3);
}

function targetText(target: Target | null, unit: string): string {
  if (target === null) return "";
  if ("atLeast" in target) return `>= ${readable(target.atLeast)} ${unit}`;
  if ("overYardstickAtMost" in target) return `<= yardstick + ${readable(target.overYardstickAtMost)} ${unit}`;
  if ("ratioAtLeast" in target) return `ratio >= ${target.ratioAtLeast}`;
  if ("ratioAtMost" in target)
    return `ratio <= ${target.ratioAtMost}${target.atMost === undefined ? "" : `, <= ${readable(target.atMost)} ${unit}`}`;
  return `<= ${readable(target.atMost)} ${unit}`;
}

const HEAD = ["what", "yardstick", "ours", "ratio", "target", "reached"];

/** The table as lines, columns aligned. */
export function table(results: readonly Result[]): string[] {
  const rows = results.map((result) => {
    const ratio = ratioOf(result);
    const ok = reached(result);
    return [
      result.name,
      result.yardstick === null ? "" : `${readable(result.yardstick.value)} ${result.unit} (${result.yardstick.name})`,
      `${readable(result.ours)} ${result.unit}`,
      ratio === null ? "" : ratio.toFixed(2),
      targetText(result.target, result.unit),
      ok === null ? "" : ok ? "yes" : "NO",
    ];
  });
  const widths = HEAD.map((head, i) => Math.max(head.length, ...rows.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string => `| ${cells.map((cell, i) => cell.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(HEAD), `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`, ...rows.map(line)];
}
