/** More alternatives than this in one pattern's braces are refused. */
export const ALTERNATIVES_MAX = 1_000;

/** So are more characters in all alternatives together. */
export const EXPANDED_MAX = 256 * 1_024;

/** A sequence that is being expanded: what its finished choices stand for, and what the one at hand does so far. */
interface Frame {
  readonly choices: string[];
  current: string[];
}

/**
 * `a{b,c}d` gives abd and acd, in this order; braces nest. A brace without its partner, or without a comma, is a character like
 * others, and so is what follows a `\\`.
 *
 * The partners are found in one pass before anything is expanded, and what is expanded is bounded: the cost is that of the pattern's
 * length and of the bounds, whatever the pattern.
 *
 * @returns null when there are more than ALTERNATIVES_MAX alternatives, or EXPANDED_MAX characters in them
 */
export function expandBraces(pattern: string): string[] | null {
  const marks = marksOf(pattern);
  const outer: Frame[] = [];
  let frame: Frame = { choices: [], current: [""] };
  let from = 0;
  for (const { at, kind } of marks) {
    const text = pattern.slice(from, at);
    from = at + 1;
    let current: string[] | null = product(frame.current, [text]);
    if (current === null) return null;
    if (kind === "open") {
      frame.current = current;
      outer.push(frame);
      frame = { choices: [], current: [""] };
      continue;
    }
    for (const choice of current) frame.choices.push(choice);
    frame.current = [""];
    if (frame.choices.length > ALTERNATIVES_MAX) return null;
    if (kind === "close") {
      const { choices } = frame;
      frame = outer.pop()!;
      current = product(frame.current, choices);
      if (current === null) return null;
      frame.current = current;
    }
  }
  return product(frame.current, [pattern.slice(from)]);
}

/** Each of the first followed by each of the second; null beyond the bounds. */
function product(first: readonly string[], second: readonly string[]): string[] | null {
  if (first.length * second.length > ALTERNATIVES_MAX) return null;
  if (length(first) * second.length + length(second) * first.length > EXPANDED_MAX) return null;
  return first.flatMap((begin) => second.map((end) => begin + end));
}

const length = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

interface Mark {
  readonly at: number;
  readonly kind: "open" | "comma" | "close";
}

/** The braces and commas that mean something, in order: those of pairs with at least one comma between them. */
function marksOf(pattern: string): Mark[] {
  const marks: Mark[] = [];
  const open: { at: number; commas: number[] }[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === "\\") at++;
    else if (character === "{") open.push({ at, commas: [] });
    else if (character === ",") open.at(-1)?.commas.push(at);
    else if (character === "}") {
      const group = open.pop();
      if (group === undefined || group.commas.length === 0) continue;
      marks.push({ at: group.at, kind: "open" }, { at, kind: "close" });
      for (const comma of group.commas) marks.push({ at: comma, kind: "comma" });
    }
  }
  return marks.sort((a, b) => a.at - b.at);
}
