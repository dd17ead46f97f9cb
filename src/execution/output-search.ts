import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../lib/files/atomic-file.ts";
import { isBeneath } from "./beneath.ts";
import { ALTERNATIVES_MAX } from "./braces.ts";
import type { OutputIssue } from "./output-issue.ts";
import { type PatternPart, parsePathPattern } from "./path-pattern.ts";

/** A file that a pattern names. */
export interface FoundOutput {
  readonly pattern: string;
  /** Path below the root as the pattern found it. */
  readonly name: string;
  /** Path below the root without symbolic links; differs from the name where a link inside the root led there. */
  readonly real: string;
}

export interface SearchOptions {
  /** The directory that is searched, without symbolic links on its way. */
  readonly root: string;
  readonly patterns: readonly string[];
  readonly maxFiles: number;
  /** Directory entries that may be looked at in all. */
  readonly maxEntries?: number;
  /** Aborting it ends the search with the signal's reason. */
  readonly signal?: AbortSignal;
}

const MAX_ENTRIES = 1_000_000;
const MAX_DEPTH = 64;
const ISSUES_MAX = 1_000;

/**
 * Find the regular files that patterns name. A symbolic link counts as what it leads to, as long as that lies below the root; `**`
 * does not descend through links. A pattern that ends in the name of a directory stands for all files below it.
 */
export async function searchOutputs(options: SearchOptions): Promise<{ found: FoundOutput[]; issues: OutputIssue[] }> {
  const search = new Search(options);
  for (const pattern of options.patterns) await search.run(pattern);
  const found = [...search.found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { found, issues: search.issues };
}

const ALL_BELOW: readonly PatternPart[] = [{ kind: "any-depth" }];

class Search {
  readonly found = new Map<string, FoundOutput>();
  readonly issues: OutputIssue[] = [];
  #pattern = "";
  /** Whether the current pattern found something, or something to complain of. */
  #any = false;
  #entriesLeft: number;
  #visited = new Set<string>();

  constructor(private readonly options: SearchOptions) {
    this.#entriesLeft = options.maxEntries ?? MAX_ENTRIES;
  }

  async run(pattern: string): Promise<void> {
    this.#pattern = pattern;
    this.#any = false;
    this.#visited = new Set();
    const alternatives = parsePathPattern(pattern);
    if (alternatives === null)
      this.#complain(pattern, "limit_reached", `its braces stand for more than ${ALTERNATIVES_MAX} alternatives, or for too much text`);
    for (const parts of alternatives ?? []) if (parts.length > 0) await this.#walk("", parts);
    if (!this.#any) this.#complain(pattern, "missing", "nothing matches");
  }

  /** Match the parts below a directory; `directory` is "" for the root, and ends in "/" otherwise. */
  async #walk(directory: string, parts: readonly PatternPart[]): Promise<void> {
    const [part, ...rest] = parts;
    if (part === undefined) return;
    const key = `${parts.length} ${parts === ALL_BELOW ? "all " : ""}${directory}`;
    // Several `**` in one pattern lead to the same place in many ways.
    if (parts.some(({ kind }) => kind === "any-depth")) {
      if (this.#visited.has(key)) return;
      this.#visited.add(key);
    }
    if (directory.split("/").length > MAX_DEPTH) {
      this.#complain(directory, "limit_reached", `more than ${MAX_DEPTH} directories deep`);
      return;
    }
    if (part.kind === "literal") {
      await this.#visit(directory + part.name, null, rest, true);
      return;
    }
    if (part.kind === "any-depth" && rest.length > 0) await this.#walk(directory, rest);
    for (const entry of await this.#list(directory)) {
      const name = directory + entry.name;
      if (part.kind === "pattern") {
        if (part.matches(entry.name)) await this.#visit(name, entry, rest, false);
      } else if (entry.isDirectory()) {
        if (!entry.name.startsWith(".") || parts === ALL_BELOW) await this.#walk(`${name}/`, parts);
      } else if (rest.length === 0 && (!entry.name.startsWith(".") || parts === ALL_BELOW)) {
        await this.#visit(name, entry, rest, false);
      }
    }
  }

  /** Take what a part has matched: the file itself, or what the rest of the pattern finds in it. */
  async #visit(name: string, entry: fs.Dirent | null, rest: readonly PatternPart[], literal: boolean): Promise<void> {
    const target = await this.#resolve(name, entry);
    if (target === null) return;
    if (rest.length > 0) {
      if (target.kind === "directory") await this.#walk(`${name}/`, rest);
      return;
    }
    if (target.kind === "file") this.#take(name, target.real);
    else if (target.kind === "directory") {
      if (literal) await this.#walk(`${name}/`, ALL_BELOW);
    } else this.#complain(name, "not_a_file", "neither a regular file nor a directory");
  }

  /** What a path is, links followed while they stay below the root; null when it is not there, or was complained of. */
  async #resolve(name: string, entry: fs.Dirent | null): Promise<{ kind: "file" | "directory" | "other"; real: string } | null> {
    const full = path.join(this.options.root, name);
    try {
      if (entry === null) await fs.promises.lstat(full);
      const real = await fs.promises.realpath(full);
      if (!isBeneath(this.options.root, real)) {
        this.#complain(name, "path_escapes_root", `a symbolic link leads to ${real}`);
        return null;
      }
      const stat = await fs.promises.lstat(real);
      return { kind: stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other", real: path.relative(this.options.root, real) };
    } catch (error) {
      if (entry === null && isErrno(error, "ENOENT", "ENOTDIR") && !(await isLink(full))) return null;
      const why = name.includes("\ufffd") ? "the name is not UTF-8" : systemReason(error);
      this.#complain(name, "artifact_unreadable", why);
      return null;
    }
  }

  async #list(directory: string): Promise<fs.Dirent[]> {
    this.options.signal?.throwIfAborted();
    if (this.#entriesLeft <= 0) return [];
    let entries: fs.Dirent[];
    try {
      entries = await fs.promises.readdir(path.join(this.options.root, directory), { withFileTypes: true });
    } catch (error) {
      if (!isErrno(error, "ENOENT")) this.#complain(directory, "artifact_unreadable", systemReason(error));
      return [];
    }
    if (entries.length > this.#entriesLeft) this.#complain(directory, "limit_reached", "too many directory entries were looked at");
    entries = entries.slice(0, this.#entriesLeft);
    this.#entriesLeft -= entries.length;
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #take(name: string, real: string): void {
    this.#any = true;
    if (this.found.has(name)) return;
    if (this.found.size < this.options.maxFiles) this.found.set(name, { pattern: this.#pattern, name, real });
    else if (!this.issues.some(({ reason, pattern }) => reason === "limit_reached" && pattern === this.#pattern)) {
      this.#complain(name, "limit_reached", `more than ${this.options.maxFiles} files`);
    }
  }

  #complain(name: string, reason: OutputIssue["reason"], detail: string): void {
    this.#any = true;
    if (this.issues.length < ISSUES_MAX) this.issues.push({ pattern: this.#pattern, name, reason, detail });
  }
}

async function isLink(file: string): Promise<boolean> {
  try {
    return (await fs.promises.lstat(file)).isSymbolicLink();
  } catch {
    return false;
  }
}

const systemReason = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : String(error));
