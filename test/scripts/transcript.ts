import fs from "node:fs";

/** One command of a transcript with all that it left. */
export interface Exchange {
  /** The command line as it is typed, with `clio-relay` in front. */
  readonly line: string;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Take a command line apart as a shell does: blanks, single and double quotes. Variables are filled in from `values`. */
export function words(line: string, values: Readonly<Record<string, string>> = {}): string[] {
  const found: string[] = [];
  for (const match of line.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)) {
    found.push(
      match[0].replace(/'([^']*)'|"([^"]*)"|\$(\w+)/g, (_, single?: string, double?: string, name?: string) => {
        if (name === undefined) return single ?? double ?? "";
        const value = values[name];
        if (value === undefined) throw new Error(`$${name} is not known here`);
        return value;
      }),
    );
  }
  return found;
}

/** The command lines of a transcript file; lines that begin with # belong to it as they are. */
export const commandLines = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => /^(?:\$ clio-relay|#)/.test(line))
    .map((line) => line.replace(/^\$ /, ""));

const indented = (text: string, mark: string): string =>
  text === ""
    ? ""
    : `${text
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => `${mark} ${line}`.trimEnd())
        .join("\n")}\n`;

/** The text of a transcript: commands, standard output behind `|`, standard error behind `!`, the exit code where it is not 0. */
export const render = (parts: readonly (Exchange | string)[]): string =>
  parts
    .map((part) =>
      typeof part === "string"
        ? `${part}\n`
        : `$ ${part.line}\n${indented(part.stdout, "|")}${indented(part.stderr, "!")}${part.code === 0 ? "" : `exit ${part.code}\n`}`,
    )
    .join("\n");

/** The transcript as it is kept. With CLIO_RELAY_UPDATE_TRANSCRIPTS=1 what came out now is kept instead. */
export function kept(file: string, now: string): string {
  if (process.env["CLIO_RELAY_UPDATE_TRANSCRIPTS"] === "1") fs.writeFileSync(file, now);
  return fs.readFileSync(file, "utf8");
}
