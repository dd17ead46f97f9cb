import type { Call } from "./verb.ts";

/** Ask on the terminal whether to go on. Without a terminal, or where it is not wanted, nothing is asked and the answer is yes. */
export async function confirm({ io, mayAsk }: Pick<Call, "io" | "mayAsk">, question: string): Promise<boolean> {
  if (!mayAsk || !io.stdin.isTerminal || !io.stderr.isTerminal) return true;
  await io.stderr.write(`${question} [y/N] `);
  if (/^y(?:es)?$/i.test((await io.stdin.line()).trim())) return true;
  await io.stderr.write("nothing was changed\n");
  return false;
}
