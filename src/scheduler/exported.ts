/** `NAME=VALUE` of a list as variables; those of the relay, and names alone, which stand for what the submit command has in its environment, are none. */
export function exportedVariables(list: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    list.flatMap((item) => {
      const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]{0,254})=(.*)$/s.exec(item) ?? [];
      return name === undefined || name.startsWith("CLIO_RELAY_") ? [] : [[name, value!] as const];
    }),
  );
}

/** What a list has between its commas. */
export const commaList = (text: string): readonly string[] => text.split(",");

/** The same of a list in which quotes of both kinds make commas a part of an item, and stay there (measured with SLURM 22.05). */
export const quotedCommaList = (text: string): readonly string[] => text.match(/(?:'[^']*'|"[^"]*"|[^,])+/g) ?? [];
