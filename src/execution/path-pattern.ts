/** One part of a path pattern: a name, a pattern for names, or `**`. */
export type PatternPart =
  | { readonly kind: "literal"; readonly name: string }
  | { readonly kind: "pattern"; readonly matches: (name: string) => boolean }
  | { readonly kind: "any-depth" };

/** More alternatives than this in one pattern's braces are refused. */
export const ALTERNATIVES_MAX = 1_000;

/**
 * Split a path pattern (glob(7) with `**` and `{a,b}`) into its alternatives, each a list of parts. Null when its braces have more
 * than ALTERNATIVES_MAX alternatives.
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
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at]!;
    if (character === "*") {
      if (tokens.at(-1)?.kind !== "star") tokens.push({ kind: "star" });
    } else if (character === "?") {
      tokens.push({ kind: "one", literal: null, matches: () => true });
    } else if (character === "[") {
      const set = bracket(characters, at);
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

/** A bracket expression that begins at `start`; null when it does not end, which makes `[` a character like others. */
function bracket(characters: readonly string[], start: number): { matches: (character: string) => boolean; end: number } | null {
  let at = start + 1;
  const negated = characters[at] === "!" || characters[at] === "^";
  if (negated) at++;
  const ranges: [low: string, high: string][] = [];
  for (let first = true; at < characters.length; first = false) {
    let low = characters[at]!;
    if (low === "]" && !first) {
      return { end: at, matches: (character) => ranges.some(([from, to]) => from <= character && character <= to) !== negated };
    }
    if (low === "\\" && at + 1 < characters.length) low = characters[++at]!;
    at++;
    if (characters[at] === "-" && at + 1 < characters.length && characters[at + 1] !== "]") {
      ranges.push([low, characters[at + 1]!]);
      at += 2;
    } else ranges.push([low, low]);
  }
  return null;
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

/** `a{b,c}d` gives abd and acd; braces nest. A brace without its partner, or without a comma, is a character like others. */
function expandBraces(pattern: string): string[] | null {
  const open = firstGroup(pattern);
  if (open === null) return [pattern];
  const results: string[] = [];
  for (const choice of open.choices) {
    const expanded = expandBraces(open.before + choice + open.after);
    if (expanded === null || results.length + expanded.length > ALTERNATIVES_MAX) return null;
    results.push(...expanded);
  }
  return results;
}

function firstGroup(pattern: string): { before: string; choices: string[]; after: string } | null {
  for (let start = 0; start < pattern.length; start++) {
    if (pattern[start] === "\\") start++;
    else if (pattern[start] === "{") {
      const group = groupAt(pattern, start);
      if (group !== null) return { before: pattern.slice(0, start), choices: group.choices, after: pattern.slice(group.end + 1) };
    }
  }
  return null;
}

function groupAt(pattern: string, start: number): { choices: string[]; end: number } | null {
  const choices: string[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === "\\") at++;
    else if (character === "{") depth++;
    else if (character === "," && depth === 1) {
      choices.push(pattern.slice(from, at));
      from = at + 1;
    } else if (character === "}" && --depth === 0) {
      choices.push(pattern.slice(from, at));
      return choices.length > 1 ? { choices, end: at } : null;
    }
  }
  return null;
}
