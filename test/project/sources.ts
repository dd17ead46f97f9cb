import fs from "node:fs";
import path from "node:path";

export interface Import {
  readonly specifier: string;
  /** Erased by the compiler: costs nothing at run time, and is still a dependency. */
  readonly typeOnly: boolean;
  /** `export … from`. */
  readonly reExport: boolean;
  /** For specifiers that start with a dot: the path below the root that they name. */
  readonly target: string | null;
}

export interface Source {
  /** Path below the root, with slashes. */
  readonly file: string;
  readonly text: string;
  /** The text as plain JavaScript, without comments and types. */
  readonly code: string;
  readonly imports: readonly Import[];
}

const transpiler = new Bun.Transpiler({ loader: "ts" });
const STATEMENT = /^[ \t]*(import|export)\b(?:([^"';]*?)\bfrom[ \t\n]*)?[ \t]*["']([^"'\n]+)["']/gm;
const CALL = /\bimport\(\s*["']([^"'\n]+)["']/g;
const BLOCK_COMMENT = /^[ \t]*\/\*[\s\S]*?\*\//gm;
const LINE_COMMENT = /^[ \t]*\/\/.*$/gm;

/** All imports and re-exports of a module, type imports included, which Bun's own scan leaves out. */
export function importsOf(file: string, text: string): Import[] {
  const bare = text.replace(BLOCK_COMMENT, "").replace(LINE_COMMENT, "");
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean, reExport: boolean): void => {
    const target = specifier.startsWith(".") ? path.posix.join(path.posix.dirname(file), specifier) : null;
    found.push({ specifier, typeOnly, reExport, target });
  };
  for (const [, keyword, clause, specifier] of bare.matchAll(STATEMENT)) {
    const names = /^\s*\{([\s\S]*)\}\s*$/.exec(clause ?? "")?.[1];
    const onlyTypes = /^\s*type\b/.test(clause ?? "") || (names?.split(",").every((name) => /^\s*(type\s|$)/.test(name)) ?? false);
    add(specifier!, onlyTypes, keyword === "export");
  }
  for (const [, specifier] of bare.matchAll(CALL)) add(specifier!, false, false);
  return found;
}

/** A module as the rules see it. */
export function source(file: string, text: string): Source {
  return { file, text, code: transpiler.transformSync(text), imports: importsOf(file, text) };
}

/** Specifiers that Bun's own parser finds, to check `importsOf` against. */
export const scannedByBun = (text: string): string[] => transpiler.scanImports(text).map((entry) => entry.path);

/** Every module below some directories of the root. */
export function readSources(root: string, ...directories: string[]): Source[] {
  const files = directories.flatMap((directory) => [...new Bun.Glob(`${directory}/**/*.ts`).scanSync({ cwd: root })]);
  return files
    .map((file) => file.split(path.sep).join("/"))
    .sort()
    .map((file) => source(file, fs.readFileSync(path.join(root, file), "utf8")));
}
