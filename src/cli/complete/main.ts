import fs from "node:fs";
import path from "node:path";
import { type Environment, readEnvironment } from "../../config/environment.ts";
import { safeText } from "../../lib/text/safe-text.ts";
import { type Candidate, type Wanted, wantedAt } from "./wanted.ts";
import { bashQuoted, bashWords, shellWords, type Typed } from "./words.ts";

/** Longer command lines are nobody's who types. */
const LINE_MAX = 64 * 1024;
/** Cells of a description. */
const DESCRIPTION_MAX = 60;
const CANDIDATES_MAX = 500;

/**
 * What a completion script asks: `__complete bash WORDBREAKS LINE`, `__complete zsh|fish WORD…`, the last word being the one at the cursor. The answer's first line
 * says what to do: `words` (the lines that follow, in zsh and fish each with a tab and a description), `files` (`files named` where the file stands behind a name and its `=`), `directories`, `command` (what stands after `--` is
 * the shell's to complete). Whatever fails has no answer: nothing is said to somebody who is typing.
 *
 * @returns the exit code, always 0
 */
export async function runComplete(argv: readonly string[]): Promise<number> {
  let answer = "words\n";
  try {
    answer = await answerTo(argv, readEnvironment());
  } catch {
    // Nothing can be suggested.
  }
  await Bun.write(Bun.stdout, answer);
  return 0;
}

/** @param argv as runComplete takes it */
export async function answerTo([shell, ...given]: readonly string[], env: Environment): Promise<string> {
  if (given.reduce((sum, word) => sum + word.length, 0) > LINE_MAX) return "words\n";
  const typed = shell === "bash" ? bashWords(given[1] ?? "", given[0] ?? "") : shellWords(given);
  const wanted = typed.redirected
    ? ({ kind: "value", before: "", suggestion: "file", cluster: null } as const)
    : await wantedAt(typed.words, typed.current);
  if (wanted.kind === "command") return "command\n";
  if (wanted.kind === "value" && (wanted.suggestion === "file" || wanted.suggestion === "directory")) {
    const found = ownListing(shell, typed, wanted.before)
      ? beginningWith(typed.current.slice(wanted.before.length), env, wanted.suggestion)
      : null;
    if (found === null) return wanted.suggestion === "directory" ? "directories\n" : wanted.named === true ? "files named\n" : "files\n";
    const words = found.map((name) => wanted.before + name);
    return shell === "bash" ? forBash(words, typed) : described(words.filter((word) => !/\p{Cc}/u.test(word)).map((word) => [word, ""]));
  }
  const candidates = await candidatesFor(wanted, typed, env);
  return shell === "bash"
    ? forBash(
        candidates.map(([word]) => word),
        typed,
      )
    : described(candidates);
}

/**
 * Whether paths are not left to the shell, which knows best how to find and quote them. bash does not see where a name begins that has one of its word breaks
 * in it, or stands after an `=` that is none; fish does not where there are both an `=` and a colon.
 */
const ownListing = (shell: string | undefined, { current, kept, quoted }: Typed, before: string): boolean =>
  shell === "bash" ? !quoted && kept !== before.length : shell === "fish" && before !== "" && current.includes(":");

async function candidatesFor(wanted: Exclude<Wanted, { kind: "command" }>, typed: Typed, env: Environment): Promise<readonly Candidate[]> {
  if (wanted.kind === "words") return wanted.words;
  const { suggestion, before, cluster } = wanted;
  if (suggestion === "file" || suggestion === "directory") return [];
  const words: readonly Candidate[] =
    typeof suggestion !== "string"
      ? suggestion.map((word) => [word, ""] as const)
      : await (await import("./live.ts")).liveValues(suggestion, { cluster, typed: typed.current.slice(before.length) }, env);
  return words.map(([word, description]) => [before + word, description]);
}

/** Only what begins as was typed, and of it only what bash replaces. It shows no descriptions. */
function forBash(candidates: readonly string[], { current, kept }: Typed): string {
  const fitting = candidates.filter((word) => word.startsWith(current) && word.length > kept);
  // A directory goes on.
  const first = fitting.length === 1 && fitting[0]!.endsWith("/") ? "words nospace" : "words";
  return lines(
    first,
    fitting.slice(0, CANDIDATES_MAX).map((word) => bashQuoted(word.slice(kept))),
  );
}

/** The shell looks itself which of them fit. */
const described = (candidates: readonly Candidate[]): string =>
  lines(
    "words",
    candidates.slice(0, CANDIDATES_MAX).map(([word, description]) => (description === "" ? word : `${word}\t${onOneLine(description)}`)),
  );

const lines = (first: string, rest: readonly string[]): string => [first, ...rest].map((line) => `${line}\n`).join("");

/** What others have named is shown, and never obeyed: neither by the terminal nor by the shell. */
function onOneLine(text: string): string {
  const safe = safeText(text).replace(/\s+/gu, " ").trim();
  return safe.length > DESCRIPTION_MAX ? `${safe.slice(0, DESCRIPTION_MAX - 1).replace(/[\uD800-\uDBFF]$/, "")}…` : safe;
}

/** Paths that begin so; of what begins with a dot only where that is typed. Directories end with a slash. */
function beginningWith(name: string, env: Environment, kind: "file" | "directory"): string[] {
  const at = name.lastIndexOf("/") + 1;
  const [above, begun] = [name.slice(0, at), name.slice(at)];
  const place = path.resolve(env.cwd, above);
  return fs
    .readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.name.startsWith(begun) && (begun !== "" || !entry.name.startsWith(".")))
    .map((entry) => ({ entry, directory: isDirectory(entry, place) }))
    .filter(({ directory }) => directory || kind === "file")
    .slice(0, CANDIDATES_MAX)
    .map(({ entry, directory }) => `${above}${entry.name}${directory ? "/" : ""}`);
}

const isDirectory = (entry: fs.Dirent, place: string): boolean =>
  entry.isDirectory() ||
  (entry.isSymbolicLink() && fs.statSync(path.join(place, entry.name), { throwIfNoEntry: false })?.isDirectory() === true);
