import { type Environment, variable } from "../../config/environment.ts";
import type { Output } from "../io.ts";

type Paint = (text: string) => string;

/** Colours (ECMA-48, SGR), or none where they would not be understood or are not wanted (no-color.org). */
export interface Style {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
}

/** Whether lines can be written over: on a terminal that obeys control sequences (terminfo has `dumb` for one that does not). */
export const overwrites = (output: Pick<Output, "isTerminal">, env: Environment): boolean =>
  output.isTerminal && env.variables["TERM"] !== "dumb";

export function styleFor(output: Output, env: Environment): Style {
  const coloured = overwrites(output, env) && variable(env, "NO_COLOR") === undefined;
  const paint =
    (code: number): Paint =>
    (text) =>
      coloured ? `\x1b[${code}m${text}\x1b[0m` : text;
  return { bold: paint(1), dim: paint(2), red: paint(31), green: paint(32), yellow: paint(33) };
}

/** The colour of a job's or task's state. */
export function stateColour(style: Style, state: string): string {
  if (state === "succeeded") return style.green(state);
  if (state === "failed" || state === "error") return style.red(state);
  if (state === "canceled" || state === "warning") return style.yellow(state);
  return state;
}
