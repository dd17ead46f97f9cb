import { type ArgsDef, type CommandDef, defineCommand } from "citty";
import { COMMON, takesValue } from "./arguments.ts";
import { COMMANDS, type Command, NOUNS } from "./commands.ts";
import type { Flag, Flags, Positionals, Verb } from "./verb.ts";

/** Runs a verb with the arguments that followed its name. */
export type RunVerb = (path: string, verb: Verb<Flags, Positionals>, rawArgs: readonly string[]) => Promise<void>;

/**
 * All commands as citty's tree: nouns, below them verbs that are loaded when they are called. citty finds the verb; what its arguments
 * mean is decided by arguments.ts, because citty takes unknown options for granted.
 */
export function commandTree(run: RunVerb): CommandDef {
  const below = (noun: string): Record<string, () => Promise<CommandDef>> =>
    Object.fromEntries(
      Object.entries(COMMANDS[noun]!).map(([name, command]) => [name, () => leaf(noun === "" ? name : `${noun} ${name}`, command, run)]),
    );
  const nouns = Object.keys(COMMANDS).filter((noun) => noun !== "");
  const branch = (noun: string): CommandDef =>
    defineCommand({
      meta: { name: noun.split(" ").at(-1)!, description: NOUNS[noun] ?? "", hidden: !(noun in NOUNS) },
      // Made for the one that is called.
      subCommands: () => ({ ...below(noun), ...branches(`${noun} `) }),
    });
  const branches = (above: string): Record<string, CommandDef> =>
    Object.fromEntries(
      nouns
        .filter((noun) => noun.startsWith(above) && !noun.slice(above.length).includes(" "))
        .map((noun) => [noun.slice(above.length), branch(noun)]),
    );
  return defineCommand({ meta: { name: "clio-relay" }, subCommands: { ...below(""), ...branches("") } });
}

async function leaf(path: string, command: Command, run: RunVerb): Promise<CommandDef> {
  const { verb } = await command.load();
  return defineCommand({
    meta: { name: path.split(" ").at(-1)!, description: command.summary, hidden: command.alias ?? false },
    args: argsOf(verb),
    run: ({ rawArgs }) => run(path, verb, rawArgs),
  });
}

/** A verb's declaration as citty's. Nothing is required here: what is missing is said by the strict parser. */
export function argsOf(verb: Verb<Flags, Positionals>): ArgsDef {
  const args: ArgsDef = {};
  for (const [name, reader] of Object.entries(verb.positionals)) {
    args[name] = { type: "positional", required: false, description: reader.label };
  }
  for (const [name, flag] of [...Object.entries(verb.flags), ...Object.entries<Flag>(COMMON)]) {
    args[name] = {
      type: takesValue(flag) ? "string" : "boolean",
      description: flag.doc,
      alias: [...(flag.short === undefined ? [] : [flag.short]), ...(flag.also ?? [])],
      ...("reader" in flag ? { valueHint: flag.reader.label } : {}),
    };
  }
  return args;
}
