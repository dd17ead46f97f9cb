import { Lexer } from "yaml";

/**
 * How deep a text of YAML goes at most, without parsing it: nested brackets, and for the rest the columns that a line is indented by and the sequences that begin on
 * it, of which each level takes one.
 */
export function yamlDepth(text: string, enough: number): number {
  let brackets = 0;
  let line = 0;
  let atStart = true;
  let deepest = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const first = lexeme[0];
    if (lexeme === "[" || lexeme === "{") brackets++;
    else if (lexeme === "]" || lexeme === "}") brackets--;
    else if (first === "\n" || first === "\r") {
      line = 0;
      atStart = true;
      continue;
    } else if (first === " " && atStart) line = lexeme.length;
    else if (lexeme === "-" || lexeme === "?") line++;
    if (first !== " ") atStart = false;
    deepest = Math.max(deepest, brackets, line);
    if (deepest > enough) break;
  }
  return deepest;
}
