import { DemoFailure } from "./installation.ts";

export const say = (text = ""): void => console.log(text);

/** Show a command before it is run. */
export const command = (text: string): void => say(`\n$ clio-relay ${text}`);

/** Say whether a claim holds; one that does not ends the demonstration. */
export function check(claim: string, holds: boolean, detail = ""): void {
  say(`  ${holds ? "ok" : "FAILED"}  ${claim}${detail === "" ? "" : ` (${detail})`}`);
  if (!holds) throw new DemoFailure(claim);
}

export const indent = (text: string): string =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n");
