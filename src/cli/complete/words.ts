/** A command line as far as it has been typed. */
export interface Typed {
  /** Words that are complete, without the program's name. */
  readonly words: readonly string[];
  /** The word at the cursor, up to it, without its quotes. */
  readonly current: string;
  /** How much of `current` the shell leaves as it is: what is suggested replaces the rest. */
  readonly kept: number;
  /** Whether the word is inside of quotes that are still open. */
  readonly quoted: boolean;
  /** Whether the word is where a redirection leads. */
  readonly redirected: boolean;
}

/** Characters that may follow a backslash within double quotes (bash(1), QUOTING). */
const ESCAPED = '$`"\\\n';
const ANSI: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\\": "\\", "'": "'", '"': '"' };

/**
 * A command line of bash in its words (bash(1), QUOTING and REDIRECTION). Nothing of it is expanded, or run.
 *
 * @param line the command's own line up to the cursor: COMP_LINE up to COMP_POINT
 * @param breaks COMP_WORDBREAKS: characters at which readline begins a word of its own, so that only what follows the last of them is replaced
 */
export function bashWords(line: string, breaks: string): Typed {
  const reader = new LineReader(line, breaks);
  while (reader.step());
  const [, ...words] = reader.words;
  return { words, current: reader.value, kept: reader.kept, quoted: reader.quote !== null, redirected: reader.target };
}

class LineReader {
  readonly words: string[] = [];
  value = "";
  kept = 0;
  /** The quote that is open. */
  quote: '"' | "'" | "$'" | null = null;
  /** Whether the word at hand is where a redirection leads. */
  target = false;
  #begun = false;
  #at = 0;

  constructor(
    private readonly line: string,
    private readonly breaks: string,
  ) {}

  /** Read on. False at the end. */
  step(): boolean {
    const character = this.line[this.#at++];
    if (character === undefined) return false;
    if (this.quote === null) this.#plain(character);
    else if (this.quote === '"') this.#doubleQuoted(character);
    else if (character === "'") this.quote = null;
    else if (this.quote === "$'" && character === "\\") this.#add(this.#ansi());
    else this.#add(character);
    return true;
  }

  #plain(character: string): void {
    if (/\s/.test(character)) this.#end();
    else if (character === "\\") this.#add(this.#next());
    else if (character === '"' || character === "'") this.#open(character);
    else if (character === "$" && this.line[this.#at] === "'") {
      this.#at++;
      this.#open("$'");
    } else if (character === "<" || character === ">") this.#redirect();
    else {
      this.#add(character);
      if (this.breaks.includes(character)) this.kept = this.value.length;
    }
  }

  #doubleQuoted(character: string): void {
    if (character === '"') this.quote = null;
    else if (character === "\\" && ESCAPED.includes(this.line[this.#at] ?? " ")) this.#add(this.#next());
    else this.#add(character);
  }

  #open(quote: '"' | "'" | "$'"): void {
    this.quote = quote;
    this.#begun = true;
    this.kept = this.value.length;
  }

  #redirect(): void {
    // The number before it says which descriptor is meant.
    if (/^\d*$/.test(this.value)) this.value = "";
    else this.#end();
    while (/[<>&|]/.test(this.line[this.#at] ?? "")) this.#at++;
    this.target = true;
    this.#begun = false;
    this.kept = 0;
  }

  #end(): void {
    if (!this.#begun) return;
    if (!this.target) this.words.push(this.value);
    this.value = "";
    this.kept = 0;
    this.target = false;
    this.#begun = false;
  }

  /** What a backslash begins within `$'…'`, as far as it is on a keyboard or written by bashQuoted. */
  #ansi(): string {
    const next = this.#next();
    if (next !== "x") return ANSI[next] ?? `\\${next}`;
    const digits = /^[0-9a-f]{1,2}/i.exec(this.line.slice(this.#at, this.#at + 2))?.[0] ?? "";
    this.#at += digits.length;
    return digits === "" ? "\\x" : String.fromCharCode(Number.parseInt(digits, 16));
  }

  #next(): string {
    return this.line[this.#at++] ?? "";
  }

  #add(text: string): void {
    this.value += text;
    this.#begun = true;
  }
}

/** Words that a shell has taken apart itself; the last one is at the cursor. */
export function shellWords(given: readonly string[]): Typed {
  return { words: given.slice(0, -1), current: given.at(-1) ?? "", kept: 0, quoted: false, redirected: false };
}

/** A word as bash reads it, on one line (bash(1), QUOTING). */
export function bashQuoted(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (!/\p{Cc}/u.test(word))
    return word.replace(/[^\w@%+=:,./-]/gu, (character) => (character.charCodeAt(0) < 0x80 ? `\\${character}` : character));
  const escaped = word.replace(/[\\'\p{Cc}]/gu, (character) =>
    character === "\n"
      ? "\\n"
      : character === "\\" || character === "'"
        ? `\\${character}`
        : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return `$'${escaped}'`;
}
