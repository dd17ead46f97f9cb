/**
 * The words of a directive line, as sbatch(1) and qsub(1) read them: separated by white space, which quotes or a backslash make a part of a word, up to a `#`
 * at a word's beginning. Null where a quote does not end.
 */
export function directiveWords(line: string): string[] | null {
  const found: string[] = [];
  let word: string | null = null;
  let quote: string | null = null;
  for (let at = 0; at < line.length; at++) {
    const character = line[at]!;
    if (character === "\\" && at + 1 < line.length) word = (word ?? "") + line[++at]!;
    else if (quote !== null) {
      if (character === quote) quote = null;
      else word += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== null) found.push(word);
      word = null;
    } else if (character === "#" && word === null) break;
    else word = (word ?? "") + character;
  }
  if (quote !== null) return null;
  if (word !== null) found.push(word);
  return found;
}

/** A word, written so that `directiveWords` and the submit commands read it again. */
export const directiveWord = (word: string): string =>
  /^[\w@%+=:,./[\]*&|!()-]+$/.test(word) ? word : `"${word.replace(/["\\]/g, "\\$&")}"`;
