import { type Assertion, type CodeRange, PatternError, type PatternNode, readPattern } from "./pattern-syntax.ts";

/** What one pattern is made into at most. */
const STEPS = 2_000;
/** How often it is worked out what comes after a state, in the whole life of a pattern: each time costs as much as the pattern is long. */
const WORK = 100_000;
/** Numbers that are kept of that. */
const KEPT = 1_000_000;
const ASCII = 128;
/** In place of a character: there is none any more. */
const END = -1;

type Step =
  | { readonly what: "set"; readonly takes: (char: number) => boolean; readonly next: number }
  | { readonly what: "fork"; readonly next: number; readonly other: number }
  | { readonly what: "assert"; readonly that: Assertion; readonly next: number }
  | { readonly what: "found" };

/** Steps in the order in which they are made; where one goes is known later. */
type Draft = { -readonly [Member in "what" | "takes" | "that" | "next" | "other"]?: unknown } & { what: Step["what"] };

/** Where one is in the pattern after some characters: at all of these steps at once. */
interface State {
  readonly steps: readonly number[];
  /** Whether there was a character before, and a word's. */
  readonly first: boolean;
  readonly word: boolean;
  /** What comes after a character, as far as that was worked out; null: the pattern was found before it. */
  readonly after: (State | null | undefined)[];
  readonly afterOthers: Map<number, State | null>;
}

/**
 * A regular expression that is looked for in a line without ever going back: all ways through it are followed at once (Thompson 1968), and where they lead is remembered, so that
 * the time grows with the line only. What has to be worked out anew for too many characters is given up.
 */
export class LinearPattern {
  readonly #steps: readonly Step[];
  readonly #states = new Map<string, State>();
  readonly #seen: Uint32Array;
  #mark = 0;
  #worked = 0;
  #kept = 0;

  /** @throws PatternError */
  constructor(source: string) {
    const { root, foldCase } = readPattern(source);
    this.#steps = new Compiler(foldCase).compiled(root);
    this.#seen = new Uint32Array(this.#steps.length);
  }

  /** Whether it is somewhere in a line, which has no line end. @throws PatternError unsafe where it would take too long */
  isIn(line: string): boolean {
    let state: State | null = this.#state([], true, false);
    for (let at = 0; at < line.length; at++) {
      let char = line.charCodeAt(at);
      let next: State | null | undefined;
      if (char < ASCII) {
        next = state.after[char];
        if (next === undefined) next = state.after[char] = this.#after(state, char);
      } else {
        char = line.codePointAt(at)!;
        if (char > 0xffff) at++;
        next = state.afterOthers.get(char);
        if (next === undefined) {
          next = this.#after(state, char);
          state.afterOthers.set(char, next);
        }
      }
      if (next === null) return true;
      state = next;
    }
    return this.#after(state, END) === null;
  }

  #state(steps: readonly number[], first: boolean, word: boolean): State {
    const key = `${first ? "^" : ""}${word ? "w" : ""}${steps.join()}`;
    let state = this.#states.get(key);
    if (state !== undefined) return state;
    this.#kept += steps.length + ASCII;
    if (this.#kept > KEPT) {
      this.#states.clear();
      this.#kept = steps.length + ASCII;
    }
    state = { steps, first, word, after: new Array<undefined>(ASCII).fill(undefined), afterOthers: new Map() };
    this.#states.set(key, state);
    return state;
  }

  /** What comes after a character; null: the pattern ends before it. */
  #after({ steps, first, word }: State, char: number): State | null {
    // An end is looked at once a line, which costs no more than the line.
    if (char !== END && ++this.#worked > WORK) throw new PatternError("unsafe", "it takes too long to look for in this text");
    const mark = ++this.#mark;
    const reached = new Set<number>();
    // It may begin anywhere.
    const stack = [0, ...steps];
    for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
      if (this.#seen[place] === mark) continue;
      this.#seen[place] = mark;
      const step = this.#steps[place]!;
      if (step.what === "found") return null;
      if (step.what === "fork") stack.push(step.other, step.next);
      else if (step.what === "assert") {
        if (holds(step.that, first, word, char)) stack.push(step.next);
      } else if (char !== END && step.takes(char)) reached.add(step.next);
    }
    return this.#state(
      [...reached].sort((a, b) => a - b),
      false,
      isWord(char),
    );
  }
}

function holds(that: Assertion, first: boolean, word: boolean, next: number): boolean {
  if (that === "line-start") return first;
  if (that === "line-end") return next === END;
  const edge = word !== isWord(next);
  return that === "word-edge" ? edge : !edge;
}

const isWord = (char: number): boolean =>
  (char >= 0x30 && char <= 0x39) || (char >= 0x41 && char <= 0x5a) || char === 0x5f || (char >= 0x61 && char <= 0x7a);

class Compiler {
  readonly #drafts: Draft[] = [];

  constructor(private readonly foldCase: boolean) {}

  compiled(root: PatternNode): readonly Step[] {
    this.#emit(root);
    this.#add({ what: "found" });
    return this.#drafts as unknown as readonly Step[];
  }

  #add(draft: Draft): Draft {
    if (this.#drafts.length >= STEPS) throw new PatternError("unsafe", `it takes more than ${STEPS} steps`);
    this.#drafts.push(draft);
    draft.next ??= this.#drafts.length;
    return draft;
  }

  get #here(): number {
    return this.#drafts.length;
  }

  /** Steps of a node; they end where the next ones begin. */
  #emit(node: PatternNode): void {
    if (node.what === "set") this.#add({ what: "set", takes: taking(node, this.foldCase) });
    else if (node.what === "assert") this.#add({ what: "assert", that: node.that });
    else if (node.what === "sequence") for (const part of node.parts) this.#emit(part);
    else if (node.what === "choice") this.#choice(node.parts);
    else this.#repeat(node.part, node.least, node.most);
  }

  #choice(parts: readonly PatternNode[]): void {
    const leaving: Draft[] = [];
    for (const [index, part] of parts.entries()) {
      const last = index === parts.length - 1;
      const fork = last ? null : this.#add({ what: "fork" });
      this.#emit(part);
      if (fork === null) break;
      // A fork of which both ways are the same goes on to the end of the choice.
      leaving.push(this.#add({ what: "fork" }));
      fork.other = this.#here;
    }
    for (const draft of leaving) draft.next = draft.other = this.#here;
  }

  #repeat(part: PatternNode, least: number, most: number): void {
    for (let count = 0; count < least; count++) {
      const before = this.#here;
      this.#emit(part);
      // Nothing, however often.
      if (this.#here === before) return;
    }
    if (most === Number.POSITIVE_INFINITY) {
      const begin = this.#here;
      const fork = this.#add({ what: "fork" });
      this.#emit(part);
      const back = this.#add({ what: "fork" });
      back.next = back.other = begin;
      fork.other = this.#here;
      return;
    }
    const leaving: Draft[] = [];
    for (let count = least; count < most; count++) {
      leaving.push(this.#add({ what: "fork" }));
      this.#emit(part);
    }
    for (const draft of leaving) draft.other = this.#here;
  }
}

function taking({ ranges, negated }: { ranges: readonly CodeRange[]; negated: boolean }, foldCase: boolean): (char: number) => boolean {
  const within = (char: number): boolean => ranges.some(([from, to]) => char >= from && char <= to);
  const both = foldCase ? (char: number): boolean => within(char) || casesOf(char).some(within) : within;
  return negated ? (char) => !both(char) : both;
}

/** A letter in its other cases, where these are one character. */
function casesOf(char: number): number[] {
  const text = String.fromCodePoint(char);
  return [text.toLowerCase(), text.toUpperCase()].map((one) => one.codePointAt(0)!).filter((one) => one !== char);
}
