import { COMMON } from "../src/cli/arguments.ts";
import { COMMANDS, NOUNS } from "../src/cli/commands.ts";
import { optionRows, usageLine } from "../src/cli/help.ts";
import type { Flags, Positionals, Verb } from "../src/cli/verb.ts";
import { SETTINGS, type Setting } from "../src/config/settings.ts";
import { VERSION } from "../src/config/version.ts";
import { EXIT, EXIT_MEANINGS } from "../src/domain/errors.ts";

/** Of this version; the page would not be the same twice if it were that of the day. */
const DATE = "2026-11-30";

/** Characters that the formatter would take for a request, or print as others (groff_char(7)). */
const ESCAPES: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "^": "\\(ha",
  "~": "\\(ti",
  '"': "\\(dq",
};

const escaped = (text: string): string =>
  text
    .replace(/[\\\-'`^~"]/g, (character) => ESCAPES[character]!)
    .replace(/[^\x20-\x7e\n]/gu, (character) => `\\[u${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`)
    .replace(/^\./gm, "\\&.");

/** Prose, in which what stands between backticks is code. */
const prose = (text: string): string =>
  text
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.length > 2 && part.startsWith("`") && part.endsWith("`") ? `\\fB${escaped(part.slice(1, -1))}\\fR` : escaped(part),
    )
    .join("");

const bold = (text: string): string => `\\fB${escaped(text)}\\fR`;
/** Names in bold, what stands for a value in italics. */
const optionName = (option: string): string =>
  option
    .trim()
    .split(/(?<=,) | (?=[^-])/)
    .map((word) => (word.startsWith("-") ? bold(word) : `\\fI${escaped(word)}\\fR`))
    .join(" ");

const items = (rows: readonly (readonly [name: string, text: string])[]): string[] =>
  rows.flatMap(([name, text]) => [".TP", name, prose(text)]);

const example = (lines: readonly string[]): string[] => [".PP", ".RS 4", ".nf", ...lines.map(escaped), ".fi", ".RE"];

const paragraphs = (text: string): string[] => text.split("\n\n").flatMap((paragraph) => [".PP", prose(paragraph)]);

function verbPart(path: string, verb: Verb<Flags, Positionals>): string[] {
  const own = optionRows(verb).slice(0, -Object.keys(COMMON).length);
  return [
    `.SS ${escaped(path)}`,
    prose(`${verb.summary}.`),
    ...example([usageLine(path, verb)]),
    ...(verb.details === undefined ? [] : paragraphs(verb.details)),
    ...items(own.map(([option, doc]) => [optionName(option), doc])),
    ...example(verb.examples.flatMap(([line, what]) => [`# ${what}`, `clio-relay ${line}`])),
  ];
}

async function commandParts(): Promise<string[]> {
  const parts: string[] = [];
  for (const [noun, verbs] of Object.entries(COMMANDS)) {
    for (const [name, command] of Object.entries(verbs)) {
      if (command.alias) continue;
      parts.push(...verbPart(`${noun} ${name}`.trim(), (await command.load()).verb));
    }
  }
  return parts;
}

/** docs/clio-relay.1: what `--help` of every verb says, for man(1); in the macros of man(7). */
export async function manPage(): Promise<string> {
  const nouns = Object.entries(NOUNS).map(([noun, what]): [string, string] => [bold(noun), `${what}.`]);
  const settings = Object.values<Setting<unknown>>(SETTINGS).map(({ variable, doc, form }): [string, string] => [
    bold(variable),
    `${doc} (${form})`,
  ]);
  return `${[
    '.\\" Generated from src/cli/ by scripts/generated-docs.ts.',
    `.TH CLIO\\-RELAY 1 ${DATE} "clio\\-relay ${VERSION}" "User Commands"`,
    ".SH NAME",
    "clio\\-relay \\- submit work to a cluster, follow it, and collect what it leaves",
    ".SH SYNOPSIS",
    `${bold("clio-relay")} \\fICOMMAND\\fR [\\fIOPTIONS\\fR]`,
    ".SH DESCRIPTION",
    prose(
      "A worker on a cluster owns a durable queue, runs the jobs in it and keeps what they leave. A daemon on the desktop holds one link to each worker, starts itself when a command needs it, " +
        "and may be stopped at any time: jobs go on, and nothing is lost. Standard output is data, standard error everything else. Everything after the first `--` is passed on untouched.",
    ),
    ...items(nouns),
    ".SH OPTIONS OF EVERY COMMAND",
    ...items(Object.entries(COMMON).map(([name, flag]) => [optionName(`${"short" in flag ? `-${flag.short}, ` : ""}--${name}`), flag.doc])),
    ".SH COMMANDS",
    ...(await commandParts()),
    ".SH ENVIRONMENT",
    prose(
      "These win over `config.toml` in the configuration directory, which has the same settings in lower case and without `CLIO_RELAY_`.",
    ),
    ...items([
      [bold("CLIO_RELAY_HOME"), "An absolute path: puts everything below that directory, and makes an installation of its own."],
      ...settings,
    ]),
    ".SH EXIT STATUS",
    ...items(Object.entries(EXIT).map(([name, code]) => [bold(String(code)), EXIT_MEANINGS[name as keyof typeof EXIT]])),
    ".SH FILES",
    ...items([
      [bold("~/.config/clio-relay"), "Clusters and settings."],
      [bold("~/.local/share/clio-relay"), "Queues and what jobs wrote."],
      [bold("~/.local/state/clio-relay"), "The ledger of connections, and logs of daemons."],
    ]),
    ".SH SEE ALSO",
    "\\fBssh_config\\fR(5)",
  ].join("\n")}\n`;
}
