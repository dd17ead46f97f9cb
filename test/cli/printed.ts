import * as v from "valibot";
import { COMMANDS } from "../../src/cli/commands.ts";
import { PRINTED } from "../../src/cli/documents/printed.ts";

const COMMON = new Set(["--json", "--yes", "-y", "--no-input"]);

/** The verb that a command line names, by its path in the table of commands; null where that is another name of one, or none. */
export function verbOf(args: readonly string[]): string | null {
  const words = args.filter((word) => !COMMON.has(word));
  for (const length of [3, 2, 1]) {
    const [verb = "", ...noun] = words.slice(0, length).toReversed();
    const command = COMMANDS[noun.toReversed().join(" ")]?.[verb];
    if (command !== undefined) return command.alias ? null : words.slice(0, length).join(" ");
  }
  return null;
}

/**
 * Hold what a verb printed with `--json` against the schema that it declares.
 *
 * @returns the documents; none of another name of a verb
 * @throws Error where it is something else, or nothing is declared
 */
export function printedDocuments(args: readonly string[], stdout: string): unknown[] {
  const verb = verbOf(args);
  if (verb === null) return [];
  const printed = PRINTED[verb];
  if (printed === undefined) throw new Error(`src/cli/documents/printed.ts does not say what ${verb} prints with --json`);
  if (stdout === "" && printed.shape !== "document") return [];
  if (!stdout.endsWith("\n")) throw new Error(`what ${verb} printed does not end with a line feed`);
  const documents = printed.shape === "document" ? [JSON.parse(stdout)] : printed.shape === "nothing" ? [stdout] : objectsIn(stdout);
  for (const one of documents) {
    const result = v.safeParse(printed.schema, one);
    if (result.success) continue;
    const wrong = result.issues.slice(0, 3).map((issue) => `${v.getDotPath(issue) ?? "the document"}: ${issue.message}`);
    throw new Error(`what ${verb} printed is no ${printed.name}: ${wrong.join("; ")}\n${JSON.stringify(one).slice(0, 2_000)}`);
  }
  return documents;
}

/** One document, or one object a line. */
function objectsIn(text: string): unknown[] {
  try {
    return text
      .slice(0, -1)
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
  } catch {
    return [JSON.parse(text) as unknown];
  }
}
