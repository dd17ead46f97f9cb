import { expandBraces } from "./braces.ts";

/** One part of a path pattern: a name, a pattern for names, or `**`. */
export type PatternPart =
  | { readonly kind: "literal"; readonly name: string }
  | { readonly kind: "pattern"; readonly matches: (name: string) => boolean }
  | { readonly kind: "any-depth" };

/**
 * Split a path pattern (glob(7) with `**` and `{a,b}`) into its alternatives, each a list of parts. Null when its braces stand
 * for more than ALTERNATIVES_MAX alternatives, or EXPANDED_MAX characters.
 *
 * `*` and `?` never match `/`, nor a leading `.` unless the part of the pattern begins with one. `[!…]` and `[^…]` negate. `\`
 * takes the next character literally.
 */
export function parsePathPattern(pattern: string): PatternPart[][] | null {
  const alternatives = expandBraces(pattern);
  return alternatives === null ? null : alternatives.map(partsOf);
}

function partsOf(pattern: string): PatternPart[] {
  const parts: PatternPart[] = [];
  for (const part of pattern.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "**") parts.push(partOf(part));
    else if (parts.at(-1)?.kind !== "any-depth") parts.push({ kind: "any-depth" });
  }
  return parts;
}

type Token =
  | { readonly kind: "star" }
  | { readonly kind: "one"; readonly matches: (character: string) => boolean; readonly literal: string | null };

function partOf(part: string): PatternPart {
  const tokens = tokenize([...part]);
  let name = "";
  for (const token of tokens) {
    if (token.kind === "star" || token.literal === null) {
      const takesHidden = part.startsWith(".") || part.startsWith("\\.");
      return {
        kind: "pattern",
        matches: (candidate) => (takesHidden || !candidate.startsWith(".")) && matchTokens(tokens, [...candidate]),
      };
    }
    name += token.literal;
  }
  return { kind: "literal", name };
}

const literal = (character: string): Token => ({ kind: "one", literal: character, matches: (other) => other === character });

function tokenize(characters: readonly string[]): Token[] {
  const tokens: Token[] = [];
  const closed = closedSets(characters);
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at]!;
    if (character === "*") {
      if (tokens.at(-1)?.kind !== "star") tokens.push({ kind: "star" });
    } else if (character === "?") {
      tokens.push({ kind: "one", literal: null, matches: () => true });
    } else if (character === "[") {
      const set = bracket(characters, at, closed);
      if (set === null) tokens.push(literal(character));
      else {
        tokens.push({ kind: "one", literal: null, matches: set.matches });
        at = set.end;
      }
    } else if (character === "\\" && at + 1 < characters.length) {
      tokens.push(literal(characters[++at]!));
    } else tokens.push(literal(character));
  }
  return tokens;
}

/** One member of a set, at `at`: a character or a range of them, and where the next member begins. */
function member(characters: readonly string[], at: number): { low: string; high: string; next: number } {
  let next = at;
  if (characters[next] === "\\" && next + 1 < characters.length) next++;
  const low = characters[next++]!;
  if (characters[next] !== "-" || next + 1 >= characters.length || characters[next + 1] === "]") return { low, high: low, next };
  return { low, high: characters[next + 1]!, next: next + 2 };
}

/** For each position, whether a set whose next member begins there comes to an end. In one pass, so that many `[` cost no more than one. */
function closedSets(characters: readonly string[]): readonly boolean[] {
  if (!characters.includes("[")) return [];
  const closed = new Array<boolean>(characters.length + 1).fill(false);
  for (let at = characters.length - 1; at >= 0; at--) {
    closed[at] = characters[at] === "]" || closed[member(characters, at).next]!;
  }
  return closed;
}

/** A bracket expression that begins at `start`; null when it does not end, which makes `[` a character like others. */
function bracket(
  characters: readonly string[],
  start: number,
  closed: readonly boolean[],
): { matches: (character: string) => boolean; end: number } | null {
  let at = start + 1;
  const negated = characters[at] === "!" || characters[at] === "^";
  if (negated) at++;
  if (at >= characters.length) return null;
  // A `]` that comes first is a member.
  const ranges = [member(characters, at)];
  at = ranges[0]!.next;
  if (!closed[at]) return null;
  while (characters[at] !== "]") {
    const next = member(characters, at);
    ranges.push(next);
    at = next.next;
  }
  return { end: at, matches: (character) => ranges.some(({ low, high }) => low <= character && character <= high) !== negated };
}

/** Match without backtracking beyond the last star, so that the cost is at most the product of the two lengths. */
function matchTokens(tokens: readonly Token[], name: readonly string[]): boolean {
  let token = 0;
  let at = 0;
  let star: { token: number; at: number } | null = null;
  while (at < name.length) {
    const current = tokens[token];
    if (current?.kind === "star") {
      star = { token, at };
      token++;
    } else if (current?.matches(name[at]!)) {
      token++;
      at++;
    } else if (star !== null) {
      star.at++;
      token = star.token + 1;
      at = star.at;
    } else return false;
  }
  while (tokens[token]?.kind === "star") token++;
  return token === tokens.length;
}
