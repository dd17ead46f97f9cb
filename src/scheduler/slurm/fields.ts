/**
 * Lines of fields between a delimiter that nobody could know beforehand, so that no job's name can make one; the name is the last field, for what is behind a line end
 * in it to be a line without any. Null where a line has another number of fields: the source speaks another language.
 */
export function fieldsOf(text: string, delimiter: string, number: number): string[][] | null {
  const rows: string[][] = [];
  for (const line of text.split("\n")) {
    if (!line.includes(delimiter)) continue;
    const fields = line.split(delimiter);
    if (fields.length !== number) return null;
    rows.push(fields);
  }
  return rows;
}

/** A delimiter for one call. */
export const newDelimiter = (): string => `|${crypto.randomUUID().slice(0, 8)}|`;
