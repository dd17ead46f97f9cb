import { COMMON } from "./arguments.ts";
import { COMMANDS, NOUNS } from "./commands.ts";
import type { Flag, Flags, Positionals, Verb } from "./verb.ts";

const columns = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`.trimEnd()).join("\n");
};

const listed = (noun: string): [string, string][] =>
  Object.entries(COMMANDS[noun] ?? {})
    .filter(([, command]) => !command.alias)
    .map(([verb, command]) => [verb, command.summary]);

const WIDTH = 90;

/** A paragraph in lines of at most WIDTH characters. */
function wrapped(paragraph: string): string {
  const lines = [""];
  for (const word of paragraph.split(" ")) {
    const line = lines.at(-1)!;
    if (line === "") lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= WIDTH) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join("\n");
}

/** What `clio-relay --help` prints. */
export const programHelp = (): string => `Submit work to a cluster, follow it, and collect what it leaves.

Usage: clio-relay COMMAND [OPTIONS]

Commands:
${columns([...listed(""), ...Object.entries(NOUNS)])}

Begin with:
  clio-relay init
  clio-relay worker start --cluster local
  clio-relay job submit -- python3 -u train.py --epochs 3

clio-relay COMMAND --help says more of each.
`;

/** What `clio-relay NOUN --help` prints. */
export const nounHelp = (noun: string): string => `${NOUNS[noun] ?? "Other names of verbs of worker"}.

Usage: clio-relay ${noun} VERB [OPTIONS]

Verbs:
${columns(listed(noun).length > 0 ? listed(noun) : Object.entries(COMMANDS[noun] ?? {}).map(([verb, { summary }]) => [verb, summary]))}

clio-relay ${noun} VERB --help says more of each.
`;

const spelled = ([name, flag]: readonly [string, Flag]): string => {
  const label = flag.kind === "value" || flag.kind === "list" ? ` ${flag.reader.label}` : "";
  return `${flag.short === undefined ? "    " : `-${flag.short}, `}--${name}${label}`;
};

const explained = (flag: Flag): string => {
  if (flag.kind === "list") return `${flag.doc} (repeatable)`;
  if (flag.kind === "value" && flag.required) return `${flag.doc} (required)`;
  const fallback = flag.kind === "value" ? flag.fallback : undefined;
  return fallback === undefined ? flag.doc : `${flag.doc} (default ${fallback})`;
};

/** `clio-relay job submit [OPTIONS] …` */
export const usageLine = (path: string, verb: Verb<Flags, Positionals>): string =>
  [
    `clio-relay ${path} [OPTIONS]`,
    ...Object.values(verb.positionals).map((reader) => (reader.optional ? `[${reader.label}]` : reader.label)),
    ...(verb.rest === undefined ? [] : [`[-- ${verb.rest}]`]),
  ].join(" ");

/** Options of a verb that its help lists: its own, then those of every verb. Those that are only known to be refused are left out. */
export const optionRows = (verb: Verb<Flags, Positionals>): [string, string][] =>
  [...Object.entries<Flag>(verb.flags), ...Object.entries<Flag>(COMMON)]
    .filter(([, flag]) => flag.kind !== "ignored" && flag.kind !== "refused")
    .map((entry) => [spelled(entry), explained(entry[1])]);

/** What `--help` of a verb prints. */
export function verbHelp(path: string, verb: Verb<Flags, Positionals>): string {
  const parts = [`${verb.summary}.`, `Usage: ${usageLine(path, verb)}`];
  if (verb.details !== undefined) parts.push(...verb.details.split("\n\n").map(wrapped));
  parts.push(`Options:\n${columns(optionRows(verb))}`);
  parts.push(`Examples:\n${verb.examples.map(([line, what]) => `  # ${what}\n  clio-relay ${line}`).join("\n")}`);
  return `${parts.join("\n\n")}\n`;
}
