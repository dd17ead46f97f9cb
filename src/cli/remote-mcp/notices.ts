import type { CliIo } from "../io.ts";
import { oneLine } from "../print/safe-text.ts";

/** Lines about what is not shown; the rest is counted. */
const LINES = 50;

/** Say on standard error what is not shown, each on a line of its own: names of tools are their server's. @param rest where all of it is */
export async function noteHidden({ stderr }: Pick<CliIo, "stderr">, hidden: readonly string[], rest: string): Promise<void> {
  for (const what of hidden.slice(0, LINES)) await stderr.write(`notice: ${oneLine(what)}\n`);
  if (hidden.length > LINES) await stderr.write(`notice: ${hidden.length - LINES} more; ${rest} has all\n`);
}
