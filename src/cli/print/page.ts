import { EXIT } from "../../domain/errors.ts";
import type { Call } from "../verb.ts";
import { instantCell } from "./quantities.ts";
import { styleFor } from "./style.ts";
import { type Column, printJson, printTable, type Row } from "./table.ts";

/** How cells are made. */
interface Cells {
  /** Whether somebody looks at them: then they may be rounded and cut. */
  readonly forPeople: boolean;
  readonly instant: (at: string | null) => string | null;
}

/** A page as people and `cut` are shown it. */
export interface ShownPage {
  readonly header: readonly Column[];
  readonly rows: (cells: Cells) => readonly Row[];
  /** What is said on standard error where there are no rows. */
  readonly none: string;
  /** What is said of it on standard error besides, a line each; null: nothing. */
  readonly notes: readonly (string | null)[];
}

/** Print a page of records: itself with --json, else its rows. Resolves to the exit code. */
export async function printPage(
  { io, json }: Pick<Call, "io" | "json">,
  page: unknown,
  { header, rows, none, notes }: ShownPage,
): Promise<number> {
  if (json) {
    await printJson(io.stdout, page);
    return EXIT.ok;
  }
  const now = io.clock.now();
  const cells: Cells = { forPeople: io.stdout.isTerminal, instant: (at) => instantCell(io.stdout, at, now) };
  const shown = rows(cells);
  await printTable(io.stdout, styleFor(io.stdout, io.env), header, shown);
  if (shown.length === 0) await io.stderr.write(`${none}\n`);
  for (const note of notes) if (note !== null) await io.stderr.write(`${note}\n`);
  return EXIT.ok;
}
