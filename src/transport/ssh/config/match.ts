import { fitsHostList, fitsList } from "../patterns.ts";
import { firstWord } from "./words.ts";

/** What a Match line looks at. */
export interface Matching {
  /** The host as it was named. */
  readonly original: string;
  /** The host's name, as far as it is known at this line. */
  readonly host: string;
  readonly user: string;
  readonly localUser: string;
  /** Whether the configuration is read for the second time, for `final`. */
  readonly final: boolean;
}

/** `unsupported` and `malformed` name the criterion; `final`: a second reading is wanted. */
export type MatchOutcome =
  | { readonly kind: "decided"; readonly active: boolean; readonly final: boolean }
  | { readonly kind: "unsupported" | "malformed"; readonly criterion: string };

/**
 * Decide a Match line of ssh_config(5), without its keyword. `exec`, `tagged`, `localnetwork`, `sessiontype` and `command` need OpenSSH itself:
 * they are `unsupported`, unless what stands before them has decided already.
 */
export function decideMatch(criteria: string, on: Matching): MatchOutcome {
  let active = true;
  let final = false;
  let count = 0;
  let left = criteria;
  for (;;) {
    const split = firstWord(left);
    if (split === null) return { kind: "malformed", criterion: left.slice(0, 100) };
    if (split.word === "" || split.word.startsWith("#")) break;
    left = split.rest;
    const negated = split.word.startsWith("!");
    const criterion = (negated ? split.word.slice(1) : split.word).toLowerCase();
    if (criterion === "all") {
      if (count > 1 || (left !== "" && !left.startsWith("#"))) return { kind: "malformed", criterion };
      return { kind: "decided", active: active && !negated, final };
    }
    count++;
    if (criterion === "final" || criterion === "canonical") {
      final ||= criterion === "final";
      if (on.final === negated) active = false;
      continue;
    }
    const argument = firstWord(left);
    if (argument === null || argument.word === "" || argument.word.startsWith("#")) return { kind: "malformed", criterion };
    left = argument.rest;
    const fits = fitting(criterion, argument.word, on);
    if (fits === null) {
      if (active) return { kind: "unsupported", criterion };
    } else if (fits === negated) active = false;
  }
  return count === 0 ? { kind: "malformed", criterion: "" } : { kind: "decided", active, final };
}

function fitting(criterion: string, argument: string, on: Matching): boolean | null {
  if (criterion === "host") return fitsHostList(on.host, argument);
  if (criterion === "originalhost") return fitsHostList(on.original, argument);
  if (criterion === "user") return fitsList(on.user, argument);
  if (criterion === "localuser") return fitsList(on.localUser, argument);
  return null;
}
