/** Control characters but tab, line feed and carriage return, and those that reorder text (Unicode Standard Annex 9). */
const UNSAFE = /(?![\t\n\r])[\p{Cc}\p{Bidi_Control}]/gu;

const visible = (character: string): string => {
  const code = character.charCodeAt(0);
  return code < 0x80 ? `^${String.fromCharCode(code ^ 0x40)}` : `\\u${code.toString(16).padStart(4, "0")}`;
};

/** Text that a terminal shows and never obeys. Tabs, line feeds and carriage returns stay. */
export const safeText = (text: string): string => text.replace(UNSAFE, visible);

/** What has several lines, as one: blank ones left out, `; ` between the others. */
export const asOneLine = (text: string): string =>
  text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("; ");
