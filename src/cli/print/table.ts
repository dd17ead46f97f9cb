import type { Output } from "../io.ts";
import { jsonText, oneLine } from "./safe-text.ts";
import type { Style } from "./style.ts";

/** Cells that a text takes on a terminal (wide characters take two). */
const width = (text: string): number => Bun.stringWidth(text);

const pad = (text: string, to: number): string => text + " ".repeat(Math.max(0, to - width(text)));

/** A column that is left out on a terminal where room is short. */
export interface SpareColumn {
  readonly spare: string;
}

/** A last column that is cut at its front where room is short: of a path, the end says most. */
export interface EndColumn {
  readonly keepsEnd: string;
}

export type Column = string | SpareColumn | EndColumn;
export type Row = readonly (string | number | null)[];

/** Cells that the last column has at least, where another one can be left out for it. */
const LAST_CELLS = 16;
/** Where it would have fewer, the terminal wraps the line: an identifier is of no use in part. */
const LAST_LEAST_CELLS = 4;

/**
 * Rows under a header where somebody looks at them, in as many columns as fit, and no header without rows; elsewhere one line a row with all of them, cells
 * separated by tabs and no header, as `cut` and `awk` take it.
 */
export async function printTable(output: Output, style: Style, header: readonly Column[], rows: readonly Row[]): Promise<void> {
  const cells = rows.map((row) => row.map((cell) => (cell === null ? "-" : oneLine(String(cell)))));
  if (!output.isTerminal) {
    await output.write(cells.map((row) => `${row.join("\t")}\n`).join(""));
    return;
  }
  if (cells.length === 0) return;
  const titles = header.map((column) => (typeof column === "string" ? column : "spare" in column ? column.spare : column.keepsEnd));
  const widths = titles.map((title, at) => Math.max(width(title), ...cells.map((row) => width(row[at] ?? ""))));
  const shown = fitting(header, widths, output.columns);
  const last = shown.at(-1)!;
  const before = cellsBefore(shown, widths);
  const room = output.columns - before >= Math.min(LAST_LEAST_CELLS, widths[last]!) ? output.columns : before + LAST_CELLS;
  const keepsEnd = typeof header[last] === "object" && "keepsEnd" in header[last];
  const line = (row: readonly string[]): string => {
    const end = keepsEnd ? cutFront(row[last]!, room - before) : row[last]!;
    return cut(shown.map((at) => (at === last ? end : pad(row[at]!, widths[at]!))).join("  "), room);
  };
  await output.write([style.bold(line(titles)), ...cells.map(line)].map((row) => `${row}\n`).join(""));
}

/** Cells of all columns but the last, with what separates them. */
const cellsBefore = (shown: readonly number[], widths: readonly number[]): number =>
  shown.slice(0, -1).reduce((sum, at) => sum + widths[at]! + 2, 0);

const isSpare = (column: Column): boolean => typeof column !== "string" && "spare" in column;

/** Places of the columns to show: of those that can be spared, the rightmost go first, until the last column has room. */
function fitting(header: readonly Column[], widths: readonly number[], columns: number): number[] {
  const shown = header.map((_, at) => at);
  for (;;) {
    const needed = cellsBefore(shown, widths) + Math.min(LAST_CELLS, widths[shown.at(-1)!]!);
    const spare = shown.findLastIndex((at) => isSpare(header[at]!));
    if (needed <= columns || spare < 0) return shown;
    shown.splice(spare, 1);
  }
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

/** The same from the end. */
function cutFront(text: string, cells: number): string {
  if (width(text) <= cells) return text;
  let shown = "";
  let used = 0;
  for (const character of [...text].reverse()) {
    used += width(character);
    if (used > cells - 1) break;
    shown = character + shown;
  }
  return `…${shown}`;
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
