import { RelayError } from "../domain/errors.ts";
import type { Call } from "./verb.ts";

/**
 * The one door for whatever takes something away that does not come back by itself (Verb.takesAway): it is asked for on the terminal, said with --yes, or not done.
 * Silence is no consent: where nobody can be asked it is refused.
 *
 * @param lost what would be lost, as a clause that begins with `this`
 * @param line the command line with which it goes without being asked
 * @throws RelayError confirmation_required where nobody can be asked, confirmation_declined where the answer is not yes
 */
export async function confirm({ io, yes, noInput }: Pick<Call, "io" | "yes" | "noInput">, lost: string, line: string): Promise<void> {
  if (yes) return;
  if (noInput || !io.stdin.isTerminal || !io.stderr.isTerminal) {
    throw new RelayError("confirmation_required", `${lost}. Nobody could be asked whether to go on`, {}, line);
  }
  await io.stderr.write(`${lost[0]!.toUpperCase()}${lost.slice(1)}. Go on? [y/N] `);
  if (!/^y(?:es)?$/i.test((await io.stdin.line()).trim())) throw new RelayError("confirmation_declined", "nothing was changed");
}
