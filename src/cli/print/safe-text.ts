/** Control characters but tab, line feed and carriage return, and those that reorder text (Unicode Standard Annex 9). */
const UNSAFE = /(?![\t\n\r])[\p{Cc}\p{Bidi_Control}]/gu;
const BREAKS = /[\t\n\r]/g;

const visible = (character: string): string => {
  const code = character.charCodeAt(0);
  return code < 0x80 ? `^${String.fromCharCode(code ^ 0x40)}` : `\\u${code.toString(16).padStart(4, "0")}`;
};

/** Text that a terminal shows and never obeys. Tabs, line feeds and carriage returns stay. */
export const safeText = (text: string): string => text.replace(UNSAFE, visible);

/** The same on one line: what would end it is shown as an escape. */
export const oneLine = (text: string): string =>
  safeText(text).replace(BREAKS, (character) => (character === "\n" ? "\\n" : character === "\r" ? "\\r" : "\\t"));
