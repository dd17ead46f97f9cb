/** A value of a configuration file of frp. Members that are undefined are left out. */
export type TomlValue = string | number | boolean | TomlTable | readonly TomlTable[] | undefined;
export interface TomlTable {
  readonly [key: string]: TomlValue;
}

const isTable = (value: TomlValue): value is TomlTable => typeof value === "object" && !Array.isArray(value);

/**
 * TOML 1.0 as frp reads it. frp takes each file for a template of Go first (`{{ .Envs.NAME }}`), so that no brace may stand in a text as it is.
 */
export function tomlOf(table: TomlTable, path: readonly string[] = []): string {
  const plain: string[] = [];
  const tables: string[] = [];
  for (const [key, value] of Object.entries(table)) {
    if (value === undefined) continue;
    const at = [...path, key];
    if (Array.isArray(value)) for (const one of value as readonly TomlTable[]) tables.push(`\n[[${at.join(".")}]]\n${tomlOf(one, at)}`);
    else if (isTable(value)) tables.push(`\n[${at.join(".")}]\n${tomlOf(value, at)}`);
    else plain.push(`${key} = ${typeof value === "string" ? quoted(value) : String(value)}\n`);
  }
  return plain.join("") + tables.join("");
}

/** A basic string with every character escaped that TOML, or a template, would take for something else. */
const quoted = (text: string): string =>
  `"${text.replace(/[\p{Cc}"\\{}\u007f]/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;
