/** What an input may be called: a letter first, so that the variable reads like a name. */
export const INPUT_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

const PREFIX = "CLIO_RELAY_INPUT_";

/** Settings have these variables; a job in which clio-relay is called would take the path of an input for one. */
const SETTINGS: ReadonlySet<string> = new Set(
  ["WORKSPACE_ROOT", "FILE_MAX_BYTES", "TOTAL_MAX_BYTES", "FILE_MAX_COUNT"].map((name) => PREFIX + name),
);

/** The variable that holds the path of an input in its job. */
export const inputVariable = (name: string): string => PREFIX + name.toUpperCase().replace(/[^A-Z0-9_]/g, "_");

/** Why inputs cannot have these names together; null where they can. */
export function inputNameProblem(names: readonly string[]): string | null {
  const taken = new Map<string, string>();
  for (const name of names) {
    if (!INPUT_NAME.test(name))
      return `${JSON.stringify(name.slice(0, 200))} is no name of an input: a letter, then letters, digits, _, . and -, at most 64`;
    const variable = inputVariable(name);
    if (SETTINGS.has(variable)) return `an input cannot be called ${name}: ${variable} is a setting`;
    const other = taken.get(variable);
    if (other !== undefined)
      return other === name ? `the input ${name} is named twice` : `the inputs ${other} and ${name} would both be ${variable}`;
    taken.set(variable, name);
  }
  return null;
}

const NAME_MAX = 255;

/** A portable file name (letters, digits, `.`, `_` and `-`, the first a letter or digit) that is as much like this one as one can be. */
export function logicalNameOf(fileName: string): string {
  const portable = fileName.replace(/[^A-Za-z0-9._-]/gu, "_");
  const begun = /^[A-Za-z0-9]/.test(portable) ? portable : `file${portable}`;
  if (begun.length <= NAME_MAX) return begun;
  // Programs look at the ending.
  const ending = /\.[A-Za-z0-9]{1,16}$/.exec(begun)?.[0] ?? "";
  return begun.slice(0, NAME_MAX - ending.length) + ending;
}
