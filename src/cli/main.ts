import { runCommand } from "citty";
import { readEnvironment } from "../config/environment.ts";
import { EXIT, RelayError } from "../domain/errors.ts";
import { nearest } from "../lib/text/nearest.ts";
import { COMMON, parseArguments, quoted } from "./arguments.ts";
import { commandTree, type RunVerb } from "./command-tree.ts";
import { COMMANDS, type Command, NOUNS } from "./commands.ts";
import { reportFailure } from "./failure.ts";
import { Installation } from "./installation.ts";
import { type CliIo, processIo, selfCommand } from "./io.ts";
import { verbMeant } from "./other-words.ts";
import { refuseUndecodableArguments, refuseUndecodableVariables } from "./undecodable.ts";
import type { Call } from "./verb.ts";

/**
 * Run one command line and resolve to the exit code (domain/errors.ts, EXIT). Standard output carries data only; whatever goes
 * wrong is said on standard error.
 *
 * @param argv arguments without the program's name
 */
export async function runCli(argv: readonly string[], io: CliIo = processIo(readEnvironment(), selfCommand())): Promise<number> {
  const own = argv.includes("--") ? argv.slice(0, argv.indexOf("--")) : argv;
  try {
    refuseUndecodableVariables(io);
    refuseUndecodableArguments(argv, io);
    return await dispatch(argv, io);
  } catch (error) {
    return reportFailure(io, error, own.some(isJson));
  }
}

/** Also where it has a value, which it does not take: whoever writes that reads documents. */
const isJson = (word: string): boolean => word === "--json" || word.startsWith("--json=");

const LEADING = new Set(["--json", "--yes", "-y", "--no-input"]);

/** Options of every verb may come first; they are taken off, and kept. */
function withoutLeading(argv: readonly string[]): [leading: readonly string[], rest: readonly string[]] {
  const start = argv.findIndex((word) => !LEADING.has(word));
  return start < 0 ? [argv, []] : [argv.slice(0, start), argv.slice(start)];
}

const HELP = new Set(["--help", "-h", "help"]);

async function dispatch(argv: readonly string[], io: CliIo): Promise<number> {
  const [leading, [first, ...more]] = withoutLeading(argv);
  if (first === undefined || HELP.has(first)) {
    // `help job submit` is `job submit --help`.
    if (first === "help" && more[0] !== undefined && !more[0].startsWith("-")) return dispatch([...more, "--help"], io);
    const { programHelp } = await import("./help.ts");
    const output = first === undefined ? io.stderr : io.stdout;
    await output.write(programHelp(output.columns));
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  if (first === "--version" || first === "-V") return run(["version", ...leading, ...more], io);
  if (Object.hasOwn(COMMANDS[""]!, first)) return run([first, ...leading, ...more], io);
  const verbs = Object.hasOwn(COMMANDS, first) && first !== "" ? COMMANDS[first]! : undefined;
  if (verbs === undefined) {
    if (first.startsWith("-")) throw unknown("option", first, [...Object.keys(COMMON).map((name) => `--${name}`), "--version"]);
    throw unknown("command", first, [
      ...Object.keys(COMMANDS[""]!),
      ...Object.keys(COMMANDS).filter((noun) => noun !== "" && !noun.includes(" ")),
    ]);
  }
  return dispatchVerb(first, verbs, leading, more, io);
}

async function dispatchVerb(
  noun: string,
  verbs: Readonly<Record<string, Command>>,
  before: readonly string[],
  words: readonly string[],
  io: CliIo,
): Promise<number> {
  const [between, [verb, ...rest]] = withoutLeading(words);
  if (verb === undefined || HELP.has(verb)) {
    if (verb === "help" && rest[0] !== undefined && !rest[0].startsWith("-")) return dispatch([...noun.split(" "), ...rest, "--help"], io);
    const { nounHelp } = await import("./help.ts");
    const output = verb === undefined ? io.stderr : io.stdout;
    await output.write(nounHelp(noun, output.columns));
    return verb === undefined ? EXIT.usage : EXIT.ok;
  }
  if (verb.startsWith("-"))
    throw unknown(
      "option",
      verb,
      Object.keys(COMMON).map((name) => `--${name}`),
    );
  const below = `${noun} ${verb}`;
  if (Object.hasOwn(COMMANDS, below)) return dispatchVerb(below, COMMANDS[below]!, [...before, ...between], rest, io);
  if (!Object.hasOwn(verbs, verb)) throw unknown(`command ${noun}`, verb, Object.keys(verbs));
  return run([...noun.split(" "), verb, ...before, ...between, ...rest], io);
}

function unknown(what: string, given: string, known: readonly string[]): RelayError {
  const [kind, ...words] = what.split(" ");
  const noun = words.length === 0 ? undefined : words.join(" ");
  const meant = kind === "command" ? (verbMeant(given, known) ?? nearest(given, known) ?? jobVerb(given, noun)) : nearest(given, known);
  const shown = noun === undefined ? given : `${noun} ${given}`;
  return new RelayError(
    "usage",
    `there is no ${kind} ${shown.slice(0, 200)}`,
    {},
    meant === null
      ? `clio-relay ${noun === undefined ? "" : `${noun} `}--help lists what there is`
      : `did you mean ${noun === undefined ? "" : `${noun} `}${meant}?`,
  );
}

/** Where a noun was expected: the verb of jobs that a word is, or stands for. */
function jobVerb(given: string, noun: string | undefined): string | null {
  if (noun !== undefined) return null;
  const verbs = Object.keys(COMMANDS["job"]!);
  const verb = verbs.includes(given) ? given : verbMeant(given, verbs);
  return verb === null ? null : `job ${verb}`;
}

/** Run a command line whose command is known to exist. */
async function run(rawArgs: readonly string[], io: CliIo): Promise<number> {
  let code: number = EXIT.ok;
  const runVerb: RunVerb = async (path, verb, argv) => {
    const { flags, args, rest, common, notices } = parseArguments(verb, argv, path);
    if (common.has("help")) {
      const { verbHelp } = await import("./help.ts");
      await io.stdout.write(verbHelp(path, verb, io.stdout.columns));
      return;
    }
    for (const notice of notices) await io.stderr.write(`notice: ${notice}\n`);
    const call: Call = {
      // Made by the verb's own declaration.
      flags: flags as never,
      args: args as never,
      rest,
      io,
      json: common.has("json"),
      yes: common.has("yes"),
      noInput: common.has("no-input"),
      relay: new Installation(io),
      table: { commands: COMMANDS, nouns: NOUNS },
    };
    const lost = (await verb.takesAway?.(call)) ?? null;
    if (lost !== null) {
      const { confirm } = await import("./confirm.ts");
      await confirm(
        call,
        lost,
        ["clio-relay", ...path.split(" "), ...argv.filter((word) => word !== "--no-input"), "--yes"].map(quoted).join(" "),
      );
    }
    code = await verb.run(call);
  };
  await runCommand(commandTree(runVerb), { rawArgs: [...rawArgs] });
  return code;
}
