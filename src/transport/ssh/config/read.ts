import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../domain/errors.ts";
import { readRegular } from "../../../lib/files/regular-file.ts";
import { fitsList, fitsPattern } from "../patterns.ts";
import { DIRECTIVES, directiveName } from "./directives.ts";
import { decideMatch } from "./match.ts";
import type { Account } from "./target.ts";
import { expandHome, expandTokens } from "./tokens.ts";
import { argumentsOf, bareLine, firstWord } from "./words.ts";

/** What a directive was set to, and where. */
export interface Setting {
  readonly args: readonly string[];
  readonly file: string;
  /** From 1; 0 where it is not known. */
  readonly line: number;
  /** Tokens and variables are replaced already. */
  readonly expanded?: boolean;
}

/** The settings that apply to one host, by the directive's name in lower case. Only those that accumulate have several. */
export type Settings = ReadonlyMap<string, readonly Setting[]>;

/** A file to begin with. `user`: it is the user's: relative Includes lie in ~/.ssh, and nobody else may be able to write it. */
export interface ConfigFile {
  readonly path: string;
  readonly user: boolean;
}

export interface Reading {
  /** As the user named it. */
  readonly host: string;
  readonly account: Account;
  readonly files: readonly ConfigFile[];
  /** Where relative Includes of the system's files lie. */
  readonly systemDirectory?: string;
}

const MAX_FILE_BYTES = 1024 * 1024;
/** OpenSSH's own bound (readconf.c). */
const MAX_DEPTH = 16;
const MAX_FILES = 256;

/**
 * Read ssh_config(5) for one host: files in order, the first value of each directive wins.
 *
 * @throws RelayError configuration_error with file and line for what ssh itself would refuse; ssh_config_unsupported for what only OpenSSH can decide
 */
export function readSettings(reading: Reading): Settings {
  const first = new Pass(reading, reading.host, false, new Map());
  first.run();
  if (!first.wantsFinal) return first.settings;
  const named = first.settings.get("hostname")?.[0]?.args[0];
  const host = (named === undefined ? reading.host : expandHost(named, reading)).toLowerCase();
  // The name is settled by then.
  const settled = { args: [host], file: "", line: 0, expanded: true };
  const second = new Pass(reading, host, true, new Map([...first.settings, ["hostname", [settled]]]));
  second.run();
  return second.settings;
}

/** The value of HostName: %h is the host as it was named. */
export function expandHost(value: string, { host, account }: Pick<Reading, "host" | "account">): string {
  return expandTokens(value, { named: host, hostName: host, port: 22, user: account.name, keyAlias: host, account }, "%h");
}

interface Place {
  readonly file: string;
  readonly user: boolean;
  readonly depth: number;
}

class Pass {
  readonly settings: Map<string, readonly Setting[]>;
  wantsFinal = false;
  #files = 0;

  constructor(
    private readonly reading: Reading,
    /** What Host lines are compared with. */
    private readonly host: string,
    private readonly final: boolean,
    settings: Settings,
  ) {
    this.settings = new Map(settings);
  }

  run(): void {
    for (const { path: file, user } of this.reading.files) this.#file({ file, user, depth: 0 }, true, false);
  }

  /** @param never nothing in it applies: it is included from a block that does not */
  #file(place: Place, active: boolean, never: boolean): void {
    if (++this.#files > MAX_FILES || place.depth > MAX_DEPTH) throw this.#bad(place, 0, "includes too many files");
    const found = readRegular(place.file, MAX_FILE_BYTES, "follow");
    if (found === "absent") return;
    if (typeof found === "string")
      throw this.#bad(place, 0, found === "too_large" ? `is larger than ${MAX_FILE_BYTES} bytes` : "is not a regular file");
    if (place.user) this.#checkOwner(place);
    const block = { active, never };
    found.text.split("\n").forEach((line, index) => {
      this.#line(bareLine(line), place, index + 1, block);
    });
  }

  #checkOwner(place: Place): void {
    const { uid } = this.reading.account;
    if (uid < 0) return;
    const stat = fs.statSync(place.file);
    if ((stat.uid !== 0 && stat.uid !== uid) || (stat.mode & 0o022) !== 0) throw this.#bad(place, 0, "can be written by others");
  }

  #line(text: string, place: Place, line: number, block: { active: boolean; never: boolean }): void {
    const split = firstWord(text);
    if (split === null) throw this.#bad(place, line, "has a quote that is not closed");
    const { word, rest } = split;
    if (word === "" || word.startsWith("#")) return;
    const name = directiveName(word);
    if (name === "match") {
      block.active = this.#match(rest, place, line) && !block.never;
      return;
    }
    const treatment = DIRECTIVES.get(name);
    if (treatment?.as === "honoured" && treatment.takes === "rest") {
      if (rest === "") throw this.#bad(place, line, `has ${word} without an argument`);
      if (block.active) this.#set(name, { args: [rest], file: place.file, line });
      return;
    }
    const args = argumentsOf(rest);
    if (args === null) throw this.#bad(place, line, "has a quote that is not closed");
    if (treatment === undefined && !["host", "include"].includes(name)) {
      if (this.#ignoresUnknown(name)) return;
      throw this.#bad(place, line, `has a directive that is not known: ${word.slice(0, 100)}`);
    }
    if (args.length === 0 || args[0] === "") throw this.#bad(place, line, `has ${word} without an argument`);
    if (name === "host") block.active = !block.never && this.#isHost(args);
    else if (name === "include") this.#include(args, place, line, block);
    else {
      const single = treatment?.as === "honoured" && treatment.takes !== "many";
      if (single && args.length > 1) throw this.#bad(place, line, `has more than one argument for ${word}`);
      if (block.active) this.#set(name, { args, file: place.file, line });
    }
  }

  #set(name: string, setting: Setting): void {
    const known = this.settings.get(name) ?? [];
    const treatment = DIRECTIVES.get(name);
    if (treatment?.as === "honoured" && treatment.takes === "each") {
      if (!known.some(({ args }) => args[0] === setting.args[0])) this.settings.set(name, [...known, setting]);
      return;
    }
    if (known.length > 0 || this.#isDecided(name)) return;
    // As ssh has it, this is the same as not saying anything.
    if (name === "connecttimeout" && setting.args[0]!.toLowerCase() === "none") return;
    this.settings.set(name, [setting]);
  }

  /** ProxyJump and ProxyCommand: whichever comes first decides for both, but `ProxyJump none` leaves the command open. */
  #isDecided(name: string): boolean {
    if (name === "proxyjump") return this.settings.has("proxycommand");
    const jump = this.settings.get("proxyjump")?.[0]?.args[0];
    return name === "proxycommand" && jump !== undefined && jump.toLowerCase() !== "none";
  }

  #isHost(patterns: readonly string[]): boolean {
    let fits = false;
    for (const pattern of patterns) {
      const negated = pattern.startsWith("!");
      if (!fitsPattern(this.host, negated ? pattern.slice(1) : pattern)) continue;
      if (negated) return false;
      fits = true;
    }
    return fits;
  }

  #match(criteria: string, place: Place, line: number): boolean {
    const { account } = this.reading;
    const named = this.settings.get("hostname")?.[0]?.args[0];
    const outcome = decideMatch(criteria, {
      original: this.reading.host,
      host: this.final || named === undefined ? this.host : expandHost(named, this.reading),
      user: this.settings.get("user")?.[0]?.args[0] ?? account.name,
      localUser: account.name,
      final: this.final,
    });
    if (outcome.kind !== "decided") {
      if (outcome.kind === "malformed") throw this.#bad(place, line, `has a Match that is not understood: ${outcome.criterion}`);
      throw new RelayError(
        "ssh_config_unsupported",
        `${place.file}, line ${line}: Match ${outcome.criterion} can only be decided by OpenSSH, which is not installed`,
        { directive: "match", path: place.file, line },
      );
    }
    this.wantsFinal ||= outcome.final;
    return outcome.active;
  }

  #include(patterns: readonly string[], place: Place, line: number, block: { active: boolean; never: boolean }): void {
    const { account, systemDirectory = "/etc/ssh" } = this.reading;
    for (const pattern of patterns) {
      if (pattern.startsWith("~") && !place.user) throw this.#bad(place, line, "includes a file of a home directory");
      const below = place.user ? path.join(account.home, ".ssh") : systemDirectory;
      for (const file of filesOf(path.resolve(below, expandHome(pattern, account))))
        this.#file({ file, user: place.user, depth: place.depth + 1 }, block.active, block.never || !block.active);
    }
  }

  #ignoresUnknown(name: string): boolean {
    const list = this.settings.get("ignoreunknown")?.[0]?.args[0];
    return list !== undefined && fitsList(name, list.toLowerCase());
  }

  #bad(place: Place, line: number, what: string): RelayError {
    const at = line === 0 ? place.file : `${place.file}, line ${line},`;
    return new RelayError("configuration_error", `${at} ${what}`, { path: place.file, ...(line === 0 ? {} : { line }) });
  }
}

/** glob(7): the files that a pattern names, in order. What is no pattern names itself. */
function filesOf(pattern: string): string[] {
  if (!/[*?[]/.test(pattern)) return [pattern];
  const fixed = path.dirname(pattern.slice(0, pattern.search(/[*?[]/) + 1));
  if (!fs.existsSync(fixed)) return [];
  // A leading dot is matched by a dot only.
  return [...new Bun.Glob(path.relative(fixed, pattern)).scanSync({ cwd: fixed, absolute: true, dot: false, followSymlinks: true })].sort();
}
