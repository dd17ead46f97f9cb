import { safeText } from "../../lib/text/safe-text.ts";

const BREAKS = /[\t\n\r]/g;

/**
 * Text that comes in pieces, for a terminal that is to obey none of it: as `safeText`, and a carriage return that does not belong to
 * a line's end ends the line, so that nothing is written over.
 */
export class SafeStream {
  #held = "";

  /** What can be shown of the text so far. A return at its end waits for what follows. */
  push(text: string): string {
    const all = this.#held + text;
    this.#held = all.endsWith("\r") ? "\r" : "";
    return safeText(all.slice(0, all.length - this.#held.length).replaceAll(/\r(?!\n)/g, "\n"));
  }

  /** What is left at the end. */
  end(): string {
    const left = this.#held === "" ? "" : "\n";
    this.#held = "";
    return left;
  }
}

/** A value as JSON that a terminal obeys none of: what JSON itself lets through of such characters is escaped, which means the same. */
export const jsonText = (value: unknown, indent = 0): string =>
  JSON.stringify(value, null, indent).replace(
    /(?!\n)[\p{Cc}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const SEQUENCE = "\x1b[";
/** What this program itself has a terminal do: colours, and to erase the rest of a line (ECMA-48, SGR and EL). */
const OWN = /^(?:\d{1,2}m|K)/;

/** Text on its way to a person, of which a terminal obeys nothing but colours and erasing, whoever forgot to look at a part of it. */
export function shownText(text: string): string {
  const [first = "", ...rest] = text.split(SEQUENCE);
  const shown = rest.map((part) => {
    const own = OWN.exec(part)?.[0];
    return own === undefined ? safeText(SEQUENCE + part) : SEQUENCE + own + safeText(part.slice(own.length));
  });
  return safeText(first) + shown.join("");
}

/** Safe text on one line: what would end it is shown as an escape. */
export const oneLine = (text: string): string =>
  safeText(text).replace(BREAKS, (character) => (character === "\n" ? "\\n" : character === "\r" ? "\\r" : "\\t"));
