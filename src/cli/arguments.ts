import { RelayError } from "../domain/errors.ts";
import { nearest } from "../lib/text/nearest.ts";
import type { Reader } from "./values.ts";
import type { Flag, Flags, Positionals, Verb } from "./verb.ts";

/** Options that every verb takes. */
export const COMMON = {
  json: { kind: "switch", doc: "Print the record itself as JSON" },
  yes: { kind: "switch", short: "y", doc: "Answer yes to whatever would be asked" },
  "no-input": { kind: "switch", doc: "Never ask; what would have to be asked is refused" },
  help: { kind: "switch", short: "h", doc: "Show this help" },
} as const satisfies Flags;

/** A command line taken apart by what a verb declares. Only options that were given, or have a default, are in `flags`. */
export interface Parsed {
  readonly flags: Record<string, unknown>;
  readonly args: Record<string, unknown>;
  readonly rest: readonly string[];
  readonly common: ReadonlySet<keyof typeof COMMON>;
  /** Reasons why given options mean nothing here. */
  readonly notices: readonly string[];
}

const usage = (message: string, hint?: string): RelayError => new RelayError("usage", message, {}, hint);

/**
 * Take a verb's command line apart: options in any order, `--option VALUE` and `--option=VALUE`, everything after the first `--`
 * untouched.
 *
 * @param path the verb as it is typed, for command lines in hints
 * @throws RelayError usage for whatever is not declared, given twice, missing or not of its form, with the nearest known name
 */
export function parseArguments(verb: Verb<Flags, Positionals>, argv: readonly string[], path: string): Parsed {
  const known = spellingsOf(verb);
  const end = argv.indexOf("--");
  const own = end < 0 ? argv : argv.slice(0, end);
  const rest = end < 0 ? [] : argv.slice(end + 1);
  const given = new Map<string, unknown>();
  const common = new Set<keyof typeof COMMON>();
  const notices: string[] = [];
  const positional: string[] = [];
  const expected = Object.keys(verb.positionals).length;
  const asksForHelp = own.includes("--help") || own.includes("-h");

  for (let at = 0; at < own.length; at++) {
    const word = own[at]!;
    if (!word.startsWith("-") || word === "-") {
      // Whatever follows belongs to the command too: its options are not looked up among ours.
      if (verb.rest !== undefined && positional.length >= expected && !asksForHelp) {
        const line = ["clio-relay", ...path.split(" "), ...own.slice(0, at), "--", ...own.slice(at)].map(quoted).join(" ");
        throw usage(`${verb.rest} comes after --, but ${JSON.stringify(word.slice(0, 200))} stands before it`, end < 0 ? line : undefined);
      }
      positional.push(word);
      continue;
    }
    const equals = word.startsWith("--") ? word.indexOf("=") : -1;
    const spelled = equals < 0 ? word : word.slice(0, equals);
    const inline = equals < 0 ? undefined : word.slice(equals + 1);
    const entry = known.get(spelled);
    if (entry === undefined) throw unknownOption(spelled, known);
    const [name, flag] = entry;
    const valued = takesValue(flag);
    if (!valued && inline !== undefined) throw usage(`--${name} takes no value`);
    let value = inline;
    if (valued && value === undefined) {
      const next = own[at + 1];
      if (next === undefined || (/^-./.test(next) && !/^-\.?\d/.test(next))) {
        throw usage(`--${name} needs a value`, next === undefined ? undefined : `--${name}=${next} takes one that begins with a dash`);
      }
      value = next;
      at++;
    }
    if ("takesValue" in flag) {
      if (flag.kind === "refused")
        throw new RelayError("configuration_error", `--${name} cannot be honoured: ${flag.doc}`, { option: name });
      notices.push(`--${name} is ignored: ${flag.doc}`);
    } else if (Object.hasOwn(COMMON, name)) common.add(name as keyof typeof COMMON);
    else if (flag.kind === "switch") given.set(name, true);
    else if (flag.kind === "list")
      given.set(name, [...((given.get(name) as unknown[] | undefined) ?? []), read(`--${name}`, flag.reader, value!)]);
    else {
      if (given.has(name)) throw usage(`--${name} is given twice`);
      given.set(name, read(`--${name}`, flag.reader, value!));
    }
  }
  // Help is given whatever else is missing.
  const complete = !common.has("help");
  return {
    flags: defaulted(verb.flags, given, complete),
    args: complete ? positionals(verb, positional, rest) : {},
    rest,
    common,
    notices,
  };
}

type Known = ReadonlyMap<string, readonly [name: string, flag: Flag]>;

/** Whether an option has a value. */
export const takesValue = (flag: Flag): boolean => (flag.kind === "switch" ? false : "takesValue" in flag ? flag.takesValue : true);

/** Every way to spell an option of a verb. */
export function spellingsOf(verb: Verb<Flags, Positionals>): Known {
  const known = new Map<string, readonly [string, Flag]>();
  for (const [name, flag] of [...Object.entries<Flag>(COMMON), ...Object.entries(verb.flags)]) {
    for (const spelled of [name, ...(flag.also ?? [])]) known.set(`--${spelled}`, [name, flag]);
    if (flag.short !== undefined) known.set(`-${flag.short}`, [name, flag]);
  }
  return known;
}

function unknownOption(spelled: string, known: Known): RelayError {
  const meant = nearest(
    spelled,
    [...known.keys()].filter((name) => name.startsWith("--")),
  );
  return usage(`there is no option ${spelled}`, meant === null ? "--help lists the options" : `did you mean ${meant}?`);
}

/** A word as a POSIX shell takes it (Shell Command Language, 2.2). */
export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

function defaulted(flags: Flags, given: ReadonlyMap<string, unknown>, complete: boolean): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, flag] of Object.entries(flags)) {
    if (given.has(name)) values[name] = given.get(name);
    else if (flag.kind === "switch") values[name] = false;
    else if (flag.kind === "list") values[name] = [];
    else if (flag.kind === "value") {
      if (flag.required && complete)
        throw usage(`--${name} is missing`, flag.reader.whenMissing ?? `--${name} ${flag.reader.label}: ${flag.doc}`);
      values[name] = flag.fallback;
    }
  }
  return values;
}

function positionals(verb: Verb<Flags, Positionals>, words: readonly string[], rest: readonly string[]): Record<string, unknown> {
  const declared = Object.entries(verb.positionals);
  if (words.length > declared.length) {
    throw usage(`${JSON.stringify(words[declared.length])} is too much`);
  }
  const missing = declared[words.length];
  if (missing !== undefined && !missing[1].optional)
    throw usage(`${missing[1].label} is missing`, missing[1].whenMissing ?? `${missing[1].label} is ${missing[1].form}`);
  if (verb.rest === undefined && rest.length > 0) throw usage(`nothing may come after --, but ${JSON.stringify(rest[0])} does`);
  return Object.fromEntries(words.map((word, at) => [declared[at]![0], read(nameOf(declared[at]![1]), declared[at]![1], word)]));
}

/** What an argument is called; where help shows the words that it may be, the error names these anyway. */
const nameOf = ({ label, suggests }: Omit<Reader<unknown>, "read">): string => (Array.isArray(suggests) ? "the argument" : label);

function read(where: string, reader: Omit<Reader<unknown>, "label">, given: string): unknown {
  const value = reader.read(given);
  if (value === undefined)
    throw usage(`${where} is ${JSON.stringify(given.slice(0, 200))}, but must be ${reader.form}`, reader.hint?.(given));
  return value;
}
