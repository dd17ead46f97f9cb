const SPACE = /[ \t\r\n]/;

/** What is left of a line after its first word. */
export interface Split {
  readonly word: string;
  readonly rest: string;
}

const skipSpace = (text: string): string => text.replace(/^[ \t\r\n]+/, "");

/**
 * The first word of a line as ssh_config(5) has it for keywords and Match criteria: ended by white space or one `=`, with one quoted part whose
 * quotes vanish. Null when a quote is not closed.
 */
export function firstWord(text: string): Split | null {
  const at = text.search(/[ \t\r\n"=]/);
  if (at < 0) return { word: text, rest: "" };
  if (text[at] === '"') {
    const end = text.indexOf('"', at + 1);
    if (end < 0) return null;
    return { word: text.slice(0, at) + text.slice(at + 1, end), rest: skipSpace(text.slice(end + 1)) };
  }
  let rest = skipSpace(text.slice(at + 1));
  if (text[at] !== "=" && rest.startsWith("=")) rest = skipSpace(rest.slice(1));
  return { word: text.slice(0, at), rest };
}

/**
 * The arguments of a directive: separated by blanks, with '…' and "…", and `\` before a quote, a backslash, or a space outside of quotes. `#` at the
 * beginning of a word starts a comment. Null when a quote is not closed.
 */
export function argumentsOf(text: string): string[] | null {
  const found: string[] = [];
  let at = 0;
  while (at < text.length) {
    if (SPACE.test(text[at]!)) {
      at++;
      continue;
    }
    if (text[at] === "#") break;
    let word = "";
    let quote = "";
    for (; at < text.length; at++) {
      const character = text[at]!;
      const next = text[at + 1];
      if (character === "\\" && (next === "'" || next === '"' || next === "\\" || (quote === "" && next === " "))) {
        word += next;
        at++;
      } else if (quote === "" && (character === " " || character === "\t")) break;
      else if (quote === "" && (character === '"' || character === "'")) quote = character;
      else if (quote !== "" && character === quote) quote = "";
      else word += character;
    }
    if (quote !== "") return null;
    found.push(word);
  }
  return found;
}

/** A line without what ssh drops at its ends. */
export const bareLine = (line: string): string => line.replace(/[ \t\r\n\f]+$/, "").replace(/^[ \t\r\n]+/, "");
