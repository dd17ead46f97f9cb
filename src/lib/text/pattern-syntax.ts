/** What keeps a text from being a pattern: it is none, or it is one that could not be searched for in linear time. */
export type PatternFault = "invalid" | "unsafe";

export class PatternError extends Error {
  constructor(
    readonly fault: PatternFault,
    message: string,
  ) {
    super(message);
  }
}

/** Code points from the first to the second, both included. */
export type CodeRange = readonly [number, number];
export type Assertion = "line-start" | "line-end" | "word-edge" | "no-word-edge";

/** A regular expression as a tree. */
export type PatternNode =
  | { readonly what: "set"; readonly ranges: readonly CodeRange[]; readonly negated: boolean }
  | { readonly what: "assert"; readonly that: Assertion }
  | { readonly what: "sequence"; readonly parts: readonly PatternNode[] }
  | { readonly what: "choice"; readonly parts: readonly PatternNode[] }
  | { readonly what: "repeat"; readonly part: PatternNode; readonly least: number; readonly most: number };

const REPEATS = 1_000;
const DIGITS: readonly CodeRange[] = [[0x30, 0x39]];
const WORDS: readonly CodeRange[] = [...DIGITS, [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]];
/** White space and line ends of ECMAScript (ECMA-262, CharacterClassEscape). */
const SPACES: readonly CodeRange[] = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const CLASSES: Readonly<Record<string, readonly CodeRange[]>> = { d: DIGITS, w: WORDS, s: SPACES };
const CONTROLS: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };
const LAST = 0x10ffff;

/** What lies between ranges. */
function complement(ranges: readonly CodeRange[]): CodeRange[] {
  const out: CodeRange[] = [];
  let next = 0;
  for (const [from, to] of [...ranges].sort(([a], [b]) => a - b)) {
    if (from > next) out.push([next, from - 1]);
    next = Math.max(next, to + 1);
  }
  if (next <= LAST) out.push([next, LAST]);
  return out;
}

const code = (char: string): number => char.codePointAt(0)!;
const invalid = (message: string): PatternError => new PatternError("invalid", message);

/**
 * Read a regular expression as ECMAScript writes it (ECMA-262, Pattern), as far as it can be searched for in linear time: without references back, and without looking
 * ahead or behind. Groups capture nothing, and `(?i)` at the beginning is for both cases of letters.
 *
 * @throws PatternError
 */
export function readPattern(source: string): { readonly root: PatternNode; readonly foldCase: boolean } {
  const foldCase = source.startsWith("(?i)");
  const reader = new Reader(Array.from(foldCase ? source.slice(4) : source));
  return { root: reader.whole(), foldCase };
}

class Reader {
  #at = 0;

  constructor(private readonly chars: readonly string[]) {}

  get #next(): string | undefined {
    return this.chars[this.#at];
  }

  #take(text: string): boolean {
    for (const [offset, char] of Array.from(text).entries()) if (this.chars[this.#at + offset] !== char) return false;
    this.#at += text.length;
    return true;
  }

  whole(): PatternNode {
    const root = this.#choice();
    if (this.#next !== undefined) throw invalid(`${this.#next} closes nothing`);
    return root;
  }

  #choice(): PatternNode {
    const parts = [this.#sequence()];
    while (this.#take("|")) parts.push(this.#sequence());
    return parts.length === 1 ? parts[0]! : { what: "choice", parts };
  }

  #sequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#next !== undefined && this.#next !== "|" && this.#next !== ")") parts.push(this.#repeated(this.#atom()));
    return { what: "sequence", parts };
  }

  #repeated(part: PatternNode): PatternNode {
    const bounds = this.#bounds();
    if (bounds === null) return part;
    const [least, most] = bounds;
    // How much is taken first makes no difference to whether there is something.
    this.#take("?");
    if (this.#bounds() !== null) throw invalid("there is nothing that could be repeated");
    if (part.what === "assert") throw invalid("a place cannot be repeated");
    return { what: "repeat", part, least, most };
  }

  #bounds(): readonly [number, number] | null {
    if (this.#take("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#take("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#take("?")) return [0, 1];
    const found = /^\{(\d{1,6})(?:(,)(\d{1,6})?)?\}/.exec(this.chars.slice(this.#at, this.#at + 16).join(""));
    if (found === null) return null;
    const [text, low, comma, high] = found;
    const least = Number(low);
    const most = comma === undefined ? least : high === undefined ? Number.POSITIVE_INFINITY : Number(high);
    if (least > most) throw invalid(`${text} ends before it begins`);
    if (least > REPEATS || (most > REPEATS && Number.isFinite(most)))
      throw new PatternError("unsafe", `${text} repeats more than ${REPEATS} times`);
    this.#at += text.length;
    return [least, most];
  }

  #atom(): PatternNode {
    const char = this.chars[this.#at++]!;
    if (char === "(") return this.#group();
    if (char === "[") return this.#class();
    if (char === ".") return { what: "set", ranges: [[10, 10]], negated: true };
    if (char === "^") return { what: "assert", that: "line-start" };
    if (char === "$") return { what: "assert", that: "line-end" };
    if (char === "*" || char === "+" || char === "?") throw invalid(`${char} has nothing before it`);
    if (char === "\\") return this.#escape();
    return single(code(char));
  }

  #group(): PatternNode {
    if (this.#take("?=") || this.#take("?!") || this.#take("?<=") || this.#take("?<!"))
      throw new PatternError("unsafe", "looking ahead or behind is not possible here");
    if (this.#take("?<")) {
      const end = this.chars.indexOf(">", this.#at);
      if (end < 0 || !/^[A-Za-z_]\w*$/.test(this.chars.slice(this.#at, end).join(""))) throw invalid("a group has no name");
      this.#at = end + 1;
    } else if (!this.#take("?:") && this.#next === "?") throw invalid("there is no such group");
    const inside = this.#choice();
    if (!this.#take(")")) throw invalid("a group is not closed");
    return inside;
  }

  #escape(): PatternNode {
    const char = this.#next;
    if (char === "b" || char === "B") {
      this.#at++;
      return { what: "assert", that: char === "b" ? "word-edge" : "no-word-edge" };
    }
    const found = this.#escaped();
    return typeof found === "number" ? single(found) : { what: "set", ranges: found, negated: false };
  }

  /** What follows a backslash, within a class or not. */
  #escaped(): number | readonly CodeRange[] {
    const char = this.chars[this.#at++];
    if (char === undefined) throw invalid("it ends with a backslash");
    const lower = char.toLowerCase();
    const ranges = Object.hasOwn(CLASSES, lower) ? CLASSES[lower]! : null;
    if (ranges !== null) return char === lower ? ranges : complement(ranges);
    if (/[1-9]/.test(char) || char === "k") throw new PatternError("unsafe", "references back are not possible here");
    if (Object.hasOwn(CONTROLS, char)) return CONTROLS[char]!;
    if (char === "x") return this.#hex(/^[0-9A-Fa-f]{2}/);
    if (char === "u") return this.#next === "{" ? this.#hex(/^\{([0-9A-Fa-f]{1,6})\}/) : this.#hex(/^[0-9A-Fa-f]{4}/);
    if (/[\p{L}\p{N}]/u.test(char)) throw invalid(`\\${char} means nothing`);
    return code(char);
  }

  #hex(form: RegExp): number {
    const found = form.exec(this.chars.slice(this.#at, this.#at + 8).join(""));
    const value = found === null ? Number.NaN : Number.parseInt(found[1] ?? found[0], 16);
    if (found === null || value > LAST) throw invalid("there is no such character");
    this.#at += found[0].length;
    return value;
  }

  #class(): PatternNode {
    const negated = this.#take("^");
    const ranges: CodeRange[] = [];
    for (;;) {
      if (this.#next === undefined) throw invalid("a class is not closed");
      if (this.#take("]")) return { what: "set", ranges, negated };
      const first = this.#member();
      if (this.#next === "-" && this.chars[this.#at + 1] !== "]" && this.chars[this.#at + 1] !== undefined) {
        this.#at++;
        const last = this.#member();
        if (typeof first !== "number" || typeof last !== "number" || first > last)
          throw invalid("a range of characters ends before it begins");
        ranges.push([first, last]);
      } else if (typeof first === "number") ranges.push([first, first]);
      else ranges.push(...first);
    }
  }

  #member(): number | readonly CodeRange[] {
    if (this.#take("\\")) {
      if (!this.#take("b")) return this.#escaped();
      return 8;
    }
    return code(this.chars[this.#at++]!);
  }
}

const single = (char: number): PatternNode => ({ what: "set", ranges: [[char, char]], negated: false });
