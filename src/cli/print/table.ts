import type { Output } from "../io.ts";
import { jsonText, oneLine } from "./safe-text.ts";
import type { Style } from "./style.ts";

/** Cells that a text takes on a terminal (wide characters take two). */
const width = (text: string): number => Bun.stringWidth(text);

const pad = (text: string, to: number): string => text + " ".repeat(Math.max(0, to - width(text)));

/**
 * Rows under a header where somebody looks at them; elsewhere one line a row, cells separated by tabs and no header, as `cut` and
 * `awk` take it.
 */
export async function printTable(
  output: Output,
  style: Style,
  header: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
): Promise<void> {
  const cells = rows.map((row) => row.map((cell) => (cell === null ? "-" : oneLine(String(cell)))));
  if (!output.isTerminal) {
    await output.write(cells.map((row) => `${row.join("\t")}\n`).join(""));
    return;
  }
  const widths = header.map((title, at) => Math.max(width(title), ...cells.map((row) => width(row[at] ?? ""))));
  const line = (row: readonly string[]): string =>
    cut(row.map((cell, at) => (at === row.length - 1 ? cell : pad(cell, widths[at]!))).join("  "), output.columns);
  await output.write([style.bold(line(header)), ...cells.map(line)].map((row) => `${row}\n`).join(""));
}

/** As much of a text as fits into so many cells, with a mark where it was cut. */
export function cut(text: string, cells: number): string {
  if (width(text) <= cells) return text;
  let shown = "";
  let used = 0;
  for (const character of text) {
    used += width(character);
    if (used > cells - 1) break;
    shown += character;
  }
  return `${shown}…`;
}

/** Names and values, one a line; rows without a value are left out. */
export async function printFields(
  output: Output,
  fields: readonly (readonly [name: string, value: string | number | null | undefined])[],
): Promise<void> {
  const shown = fields.filter(([, value]) => value !== null && value !== undefined);
  const widest = Math.max(0, ...shown.map(([name]) => name.length));
  await output.write(shown.map(([name, value]) => `${name.padEnd(widest)}  ${oneLine(String(value))}\n`).join(""));
}

/** The record itself, indented by two. */
export const printJson = (output: Output, value: unknown): Promise<void> => output.write(`${jsonText(value, 2)}\n`);
