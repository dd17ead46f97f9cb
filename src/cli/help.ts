import { COMMON } from "./arguments.ts";
import { COMMANDS, NOUNS } from "./commands.ts";
import type { Flag, Flags, Positionals, Verb } from "./verb.ts";

/** Lines are no longer than this, however wide a terminal is. */
const WIDEST = 100;
/** Names in the first column that are longer stand on a line of their own. */
const NAMES_MOST = 34;
/** Where there is less room beside the names, the text stands below them. */
const TEXT_LEAST = 30;
const BELOW = 8;

const lineWidth = (columns: number): number => Math.min(WIDEST, columns);

/** Text in lines of at most so many cells; a word that is longer has a line of its own. */
function wrapped(text: string, width: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line === "") lines[lines.length - 1] = word;
    else if (Bun.stringWidth(line) + 1 + Bun.stringWidth(word) <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Names with what is said of each beside them, or below where that is too narrow. */
function columns(rows: readonly (readonly [string, string])[], width: number): string {
  const widest = Math.max(0, ...rows.map(([name]) => name.length).filter((length) => length <= NAMES_MOST));
  const beside = width - widest - 4 >= TEXT_LEAST;
  const indent = beside ? widest + 4 : BELOW;
  return rows
    .flatMap(([name, text]) => {
      const lines = wrapped(text, width - indent).map((line) => " ".repeat(indent) + line);
      if (!beside || name.length > widest) return [`  ${name}`, ...lines];
      return [`  ${name.padEnd(widest)}  ${lines[0]!.trimStart()}`, ...lines.slice(1)];
    })
    .join("\n");
}

const listed = (noun: string): [string, string][] =>
  Object.entries(COMMANDS[noun] ?? {})
    .filter(([, command]) => !command.alias)
    .map(([verb, command]) => [verb, command.summary]);

/** Nouns directly below another one; "" for those that stand alone. */
const nounsBelow = (noun: string): [string, string][] =>
  Object.entries(NOUNS).flatMap(([name, what]): [string, string][] => {
    const words = name.split(" ");
    return words.slice(0, -1).join(" ") === noun ? [[words.at(-1)!, what]] : [];
  });

/** What `clio-relay --help` prints. */
export const programHelp = (cells: number): string => `Submit work to a cluster, follow it, and collect what it leaves.

Usage: clio-relay COMMAND [OPTIONS]

Commands:
${columns([...listed(""), ...nounsBelow("")], lineWidth(cells))}

Begin with:
  clio-relay init
  clio-relay worker start --cluster local
  clio-relay job submit -- python3 -u train.py --epochs 3

clio-relay COMMAND --help says more of each.
`;

/** What `clio-relay NOUN --help` prints. */
export const nounHelp = (noun: string, cells: number): string => `${NOUNS[noun] ?? "Other names of verbs of worker"}.

Usage: clio-relay ${noun} VERB [OPTIONS]

Verbs:
${columns(listed(noun).length > 0 ? [...listed(noun), ...nounsBelow(noun)] : Object.entries(COMMANDS[noun] ?? {}).map(([verb, { summary }]) => [verb, summary]), lineWidth(cells))}

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

/** What `--help` of a verb prints. @param cells how wide the terminal is */
export function verbHelp(path: string, verb: Verb<Flags, Positionals>, cells: number): string {
  const width = lineWidth(cells);
  const parts = [`${verb.summary}.`, `Usage: ${usageLine(path, verb)}`];
  if (verb.details !== undefined) parts.push(...verb.details.split("\n\n").map((paragraph) => wrapped(paragraph, width).join("\n")));
  parts.push(`Options:\n${columns(optionRows(verb), width)}`);
  parts.push(`Examples:\n${verb.examples.map(([line, what]) => `  # ${what}\n  clio-relay ${line}`).join("\n")}`);
  return `${parts.join("\n\n")}\n`;
}
