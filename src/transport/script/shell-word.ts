import { RelayError } from "../../domain/errors.ts";

/**
 * A text as one word of POSIX sh, whatever is in it (POSIX, Shell Command Language, 2.2.2).
 *
 * @throws RelayError configuration_error for a NUL, which no shell can hold
 */
export function shellWord(text: string): string {
  if (text.includes("\0")) throw new RelayError("configuration_error", "a value for a program on the cluster's host contains NUL");
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Assignments of POSIX sh, one a line. Names are ours. */
export const assignments = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => {
      if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new TypeError(`not a name of a shell variable: ${name}`);
      return `${name}=${shellWord(value)}\n`;
    })
    .join("");
