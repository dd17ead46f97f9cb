import { RelayError } from "../domain/errors.ts";
import { isId } from "../domain/id.ts";
import { parseRelayUrl } from "../domain/relay-url.ts";
import { nearest } from "../lib/text/nearest.ts";
import { parseBytes, parseDecimal, parseDuration, parseWhole } from "../lib/text/quantity.ts";
import { roundedNumber, wouldRound } from "../lib/text/rounded-number.ts";

/** What a shell may suggest for a value: these words, or what there is of a kind. */
export type Suggestion =
  | readonly string[]
  | "file"
  | "directory"
  | "cluster"
  | "job"
  | "active job"
  | "task"
  | "artifact"
  | "pinned artifact"
  | "key";

/** How the text of an option or argument becomes a value. */
export interface Reader<T> {
  /** What help shows in its place. */
  readonly label: string;
  /** What it must be, as errors say it. */
  readonly form: string;
  /** undefined: the text is not such a value. */
  readonly read: (text: string) => T | undefined;
  /** What to do about a text that is not such a value, where it can be told. */
  readonly hint?: (text: string) => string | undefined;
  /** What to do where it is left out. */
  readonly whenMissing?: string;
  /** What a shell may suggest, where the label does not say it (complete/suggestion.ts); null: nothing. */
  readonly suggests?: Suggestion | null;
}

const orUndefined = <T>(value: T | null): T | undefined => (value === null ? undefined : value);

/** What a text has to be whose label says that it names a place of the file system; an empty one is a variable of the shell that is not set. */
const PLACES: Readonly<Record<string, string>> = {
  FILE: "the name of a file",
  DIR: "the name of a directory",
  PATH: "a path",
  "FILE|DIR": "the name of a file or directory",
  "FILE|URL": "the name of a file, or a URL",
};

/** Any text, but an empty one where the label says that it names a place. */
export const text = (label: string): Reader<string> => {
  const place = Object.hasOwn(PLACES, label) ? PLACES[label] : undefined;
  return place === undefined
    ? { label, form: "text", read: (given) => given }
    : { label, form: place, read: (given) => (given === "" ? undefined : given) };
};

/** Identifier of a record: what every id looks like, so that a slip of the hand is caught before anything is sent. */
export const identifier = (label: string, what: string): Reader<string> => ({
  label,
  form: `the id of ${what} (lower case letters, digits, - and _)`,
  read: (given) => (isId(given) ? given : undefined),
});

/** What kind of record a word names, as far as it says so. */
const kindNamed = (given: string): string | undefined => (given === "last" ? "job" : /^(job|task|artifact)_/.exec(given)?.[1]);

/** The id of a record of one of these kinds; one that says that it is of another kind is none. */
const recordId = (label: string, what: string, ...kinds: readonly string[]): Reader<string> => ({
  ...identifier(label, what),
  read: (given) => (isId(given) && kinds.includes(kindNamed(given) ?? kinds[0]!) ? given : undefined),
});

/** Of a job in place of what belongs to it: the command that lists that. */
const listedBy = (command: string, what: string) => ({
  hint: (given: string) => (kindNamed(given) === "job" && isId(given) ? `${command} ${given} lists the ${what} of that job` : undefined),
  whenMissing: `${command} last lists the ${what} of the job that was submitted last from here`,
});

/** A job as find-record.ts finds it. */
export const jobId: Reader<string> = {
  ...recordId("JOB", "a job", "job"),
  form: "the id of a job, at least 8 digits of its beginning, or last",
  hint: (given) =>
    kindNamed(given) === "artifact" && isId(given)
      ? `clio-relay job read-artifact ${given} shows which job left it, and fetches it with -o`
      : "clio-relay job list shows jobs",
  whenMissing: "last means the job that was submitted last from here; clio-relay job list shows others",
};
/** The same where only one that has not ended is of use. */
export const activeJobId: Reader<string> = { ...jobId, suggests: "active job" };
export const taskId: Reader<string> = { ...recordId("TASK", "a task", "task"), ...listedBy("clio-relay job tasks", "tasks") };
export const artifactId: Reader<string> = {
  ...recordId("ARTIFACT", "an artifact", "artifact"),
  ...listedBy("clio-relay job list-artifacts", "artifacts"),
};
/** An artifact, or a job that has left it. */
export const artifactOrJob: Reader<string> = {
  ...recordId("ARTIFACT|JOB", "an artifact", "artifact", "job"),
  form: "the id of an artifact, or of a job with the name of a file after it",
  hint: (given) =>
    kindNamed(given) === undefined
      ? `clio-relay job read-artifact last ${/^[\w.-]+$/.test(given) ? given : "NAME"} is the file of that name of the job that was submitted last`
      : undefined,
  whenMissing: artifactId.whenMissing!,
};

export const clusterName: Reader<string> = {
  label: "NAME",
  form: "the name of a cluster (lower case letters, digits, - and _)",
  whenMissing: "clio-relay cluster list shows which there are",
  read: (given) => (isId(given) ? given : undefined),
  suggests: "cluster",
};

export const whole = (least: number, most: number): Reader<number> => ({
  label: "N",
  form: `a whole number from ${least} to ${most === Number.MAX_SAFE_INTEGER ? "2^53-1" : most}`,
  read(given) {
    const value = parseWhole(given);
    return value !== null && value >= least && value <= most ? value : undefined;
  },
});

export const decimal: Reader<number> = { label: "NUMBER", form: "a number", read: (given) => orUndefined(parseDecimal(given)) };

/** SHA-256 in hexadecimal. */
export const sha256: Reader<string> = {
  label: "SHA256",
  form: "64 hexadecimal digits",
  read: (given) => (/^[0-9a-f]{64}$/i.test(given) ? given.toLowerCase() : undefined),
};

export const byteCount: Reader<number> = {
  label: "BYTES",
  form: "a number of bytes, or one with KiB, MiB or GiB",
  read: (given) => orUndefined(parseBytes(given)),
  hint: (given) => {
    const [, number, unit] = /^(\d+)\s*([KMGT])i?B?$/i.exec(given) ?? [];
    return unit === undefined ? undefined : `did you mean ${number}${unit.toUpperCase()}iB?`;
  },
};

/** Seconds; `30m`, `2h`, `45s`, `1d` or a bare number of seconds. */
export const duration: Reader<number> = {
  label: "DURATION",
  form: "a duration such as 45s, 30m, 2h or 1d, or a number of seconds, above zero",
  read: (given) => orUndefined(parseDuration(given)),
};

/** How long a key is let in, in seconds; null: for good. */
export const keyTtl: Reader<number | null> = {
  label: "DURATION",
  form: "a duration of a minute to ten years, such as 12h or 30d, or `none`",
  read(given) {
    if (given === "none") return null;
    const seconds = parseDuration(given);
    return seconds === null || seconds === undefined || seconds < 60 || seconds > 10 * 366 * 86_400 ? undefined : Math.ceil(seconds);
  },
};

/** The same, or 0 for no waiting at all. */
export const patience: Reader<number> = {
  label: "SECONDS",
  form: "a number of seconds, or a duration such as 30m",
  read: (given) => (/^0+(?:\.0+)?s?$/.test(given) ? 0 : orUndefined(parseDuration(given))),
};

export const oneOf = <const T extends string>(...words: readonly T[]): Reader<T> => ({
  label: words.join("|"),
  form: `one of ${words.join(", ")}`,
  read: (given) => words.find((word) => word === given),
  hint: (given) => {
    const meant = nearest(given, words);
    return meant === null ? undefined : `did you mean ${meant}?`;
  },
  suggests: words,
});

/** `KEY=VALUE`, cut at the first `=`. */
export const assignment = (label: string): Reader<readonly [key: string, value: string]> => ({
  label,
  form: label,
  read(given) {
    const at = given.indexOf("=");
    return at > 0 ? [given.slice(0, at), given.slice(at + 1)] : undefined;
  },
});

/** A JSON object. */
export const jsonObject: Reader<Record<string, unknown>> = {
  label: "JSON",
  form: "a JSON object",
  read(given) {
    try {
      const value: unknown = JSON.parse(given);
      if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
      const rounded = roundedNumber(given);
      if (rounded !== null) throw new RelayError("usage", wouldRound(rounded));
      return value as Record<string, unknown>;
    } catch (error) {
      if (error instanceof RelayError) throw error;
      return undefined;
    }
  },
};

/** The address of a relay-host, in its one spelling. What is none is not repeated in the error: it may hold a password. */
export const relayUrl: Reader<string> = {
  label: "URL",
  form: "the address of a relay-host (wss, ws, tls or tcp), with no user, password or query",
  read: (given) => parseRelayUrl(given).text,
};
