import { COMMON, spellingsOf, takesValue } from "../arguments.ts";
import { COMMANDS, NOUNS } from "../commands.ts";
import type { Reader, Suggestion } from "../values.ts";
import type { Flag, Flags, Positionals, Verb } from "../verb.ts";
import { suggestionOf } from "./suggestion.ts";

/** Something that can stand where the cursor is, and what it is. */
export type Candidate = readonly [value: string, description: string];

/** What can stand where the cursor is. */
export type Wanted =
  | { readonly kind: "words"; readonly words: readonly Candidate[] }
  /** @member before what of the word is an option's name with its `=`, and a name that a file is given with another one */
  | {
      readonly kind: "value";
      readonly before: string;
      readonly suggestion: Suggestion;
      readonly cluster: string | null;
      /** Whether `before` ends with such a name. */
      readonly named?: true;
    }
  /** Whatever the shell itself knows as a command. */
  | { readonly kind: "command" };

/** What help shows of a value that gives a file a name. */
const NAMED_FILE = "NAME=FILE";
const NOTHING: Wanted = { kind: "words", words: [] };
const LEADING: ReadonlySet<string> = new Set(["--json", "--yes", "-y", "--no-input", "help", "--help", "-h"]);

/**
 * What a command line may go on with, by the table of commands.
 *
 * @param words what stands before, without the program's name
 * @param current what has been typed of the word that is looked for
 */
export async function wantedAt(words: readonly string[], current: string): Promise<Wanted> {
  let noun = "";
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (LEADING.has(word)) continue;
    const below = noun === "" ? word : `${noun} ${word}`;
    if (word !== "" && Object.hasOwn(COMMANDS, below)) {
      noun = below;
      continue;
    }
    const command = COMMANDS[noun]?.[word];
    if (command === undefined || !Object.hasOwn(COMMANDS[noun]!, word)) return NOTHING;
    const { verb } = await command.load();
    return verbWanted(verb, words.slice(at + 1), current);
  }
  if (!current.startsWith("-")) return { kind: "words", words: commandsBelow(noun) };
  return { kind: "words", words: [...optionsOf(COMMON), ...(noun === "" ? [["--version", "Print the version"] as const] : [])] };
}

/** Verbs and nouns at a place of the table; those that are only other names are left out where there are others. */
function commandsBelow(noun: string): Candidate[] {
  const verbs = Object.entries(COMMANDS[noun] ?? {});
  const listed = verbs.filter(([, command]) => !command.alias);
  const nouns = Object.entries(NOUNS).flatMap(([name, what]): Candidate[] => {
    const path = name.split(" ");
    return path.slice(0, -1).join(" ") === noun ? [[path.at(-1)!, what]] : [];
  });
  return [...(listed.length > 0 ? listed : verbs).map(([name, { summary }]): Candidate => [name, summary]), ...nouns];
}

/** What help shows, by its long name. */
const optionsOf = (flags: Flags): Candidate[] =>
  Object.entries(flags)
    .filter(([, { kind }]) => kind !== "ignored" && kind !== "refused")
    .map(([name, { doc }]) => [`--${name}`, doc]);

function verbWanted(verb: Verb<Flags, Positionals>, words: readonly string[], current: string): Wanted {
  if (words.includes("--")) return verb.rest?.startsWith("COMMAND") ? { kind: "command" } : NOTHING;
  const known = spellingsOf(verb);
  const given = new Map<string, string | null>();
  let pending: Flag | null = null;
  let place = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (!word.startsWith("-") || word === "-") {
      place++;
      continue;
    }
    const [spelled, inline] = cutAtEquals(word);
    const entry = known.get(spelled);
    if (entry === undefined) continue;
    const [name, flag] = entry;
    const separate = takesValue(flag) && inline === null;
    given.set(name, separate ? (words[at + 1] ?? null) : inline);
    if (separate && ++at === words.length) pending = flag;
  }
  const cluster = given.get("cluster") ?? null;
  const value = (reader: Omit<Reader<unknown>, "read"> | null, before: string): Wanted => {
    if (reader?.label === NAMED_FILE) {
      const name = /^[^=]*=/.exec(current.slice(before.length))?.[0];
      return name === undefined ? NOTHING : { kind: "value", before: before + name, suggestion: "file", cluster, named: true };
    }
    const suggestion = reader === null ? null : suggestionOf(reader);
    return suggestion === null ? NOTHING : { kind: "value", before, suggestion, cluster };
  };
  if (pending !== null) return value(readerOf(pending), "");
  if (current.startsWith("-")) {
    const [spelled, inline] = cutAtEquals(current);
    if (inline === null) return { kind: "words", words: stillPossible(verb, given) };
    const flag = known.get(spelled)?.[1];
    return flag !== undefined && takesValue(flag) ? value(readerOf(flag), `${spelled}=`) : NOTHING;
  }
  const positional = Object.values(verb.positionals)[place];
  if (positional !== undefined) return value(positional, "");
  return { kind: "words", words: stillPossible(verb, given) };
}

/** Options that may be given now, and the mark of what follows them. */
function stillPossible(verb: Verb<Flags, Positionals>, given: ReadonlyMap<string, unknown>): Candidate[] {
  const flags = Object.entries<Flag>({ ...verb.flags, ...COMMON }).filter(([name, flag]) => flag.kind === "list" || !given.has(name));
  return [...optionsOf(Object.fromEntries(flags)), ...(verb.rest === undefined ? [] : [["--", `${verb.rest} follows`] as const])];
}

const cutAtEquals = (word: string): [spelled: string, inline: string | null] => {
  const equals = word.startsWith("--") ? word.indexOf("=") : -1;
  return equals < 0 ? [word, null] : [word.slice(0, equals), word.slice(equals + 1)];
};

const readerOf = (flag: Flag): Reader<unknown> | null => ("reader" in flag ? flag.reader : null);
