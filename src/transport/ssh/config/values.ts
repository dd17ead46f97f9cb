import { RelayError } from "../../../domain/errors.ts";
import { parseWhole } from "../../../lib/text/quantity.ts";
import type { Setting, Settings } from "./read.ts";

const UNITS: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** The settings of one host, by kinds of values. Names of directives are in lower case. */
export class Values {
  constructor(private readonly settings: Settings) {}

  has(name: string): boolean {
    return this.settings.has(name);
  }

  /** Every argument. */
  all(name: string): readonly string[] {
    return this.settings.get(name)?.flatMap(({ args }) => args) ?? [];
  }

  text(name: string): string | null {
    return this.settings.get(name)?.[0]?.args[0] ?? null;
  }

  /** Of a directive that may be `none`, which is null. */
  unlessNone(name: string): string | null {
    const value = this.text(name);
    return value?.toLowerCase() === "none" ? null : value;
  }

  /** Whether tokens and variables are replaced already. */
  isExpanded(name: string): boolean {
    return this.settings.get(name)?.[0]?.expanded ?? false;
  }

  /** @throws RelayError configuration_error */
  flag(name: string, usual: boolean): boolean {
    const value = this.text(name)?.toLowerCase();
    if (value === undefined) return usual;
    if (value === "yes" || value === "true") return true;
    if (value === "no" || value === "false") return false;
    throw this.bad(name);
  }

  /** @throws RelayError configuration_error */
  whole(name: string, usual: number, most: number): number {
    const value = this.text(name);
    if (value === null) return usual;
    const number = parseWhole(value);
    if (number === null || number > most) throw this.bad(name);
    return number;
  }

  /** Seconds of a time of sshd_config(5), TIME FORMATS: `90`, `1m30`, `1h`. Null for `none` and 0. @throws RelayError configuration_error */
  seconds(name: string): number | null {
    const value = this.unlessNone(name);
    if (value === null) return null;
    if (!/^(?:\d{1,9}[smhdw]?)+$/i.test(value)) throw this.bad(name);
    let seconds = 0;
    for (const [, count, unit] of value.matchAll(/(\d+)([smhdw]?)/gi)) seconds += Number(count) * UNITS[unit!.toLowerCase()]!;
    return seconds === 0 ? null : seconds;
  }

  /** Where it was set. */
  where(name: string): Setting {
    return this.settings.get(name)![0]!;
  }

  /** The failure for a value that ssh would not take, either. */
  bad(name: string): RelayError {
    const { file, line } = this.where(name);
    const at = `${file}${line > 0 ? `, line ${line},` : ""}`;
    return new RelayError("configuration_error", `${at} has a value of ${name} that is not understood`, { path: file, directive: name });
  }
}
