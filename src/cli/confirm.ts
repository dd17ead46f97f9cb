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
  const answer = await io.stdin.line();
  // Ctrl-D leaves the question's line open.
  if (answer === null) await io.stderr.write("\n");
  if (!/^y(?:es)?$/i.test((answer ?? "").trim())) throw new RelayError("confirmation_declined", "nothing was changed");
}
