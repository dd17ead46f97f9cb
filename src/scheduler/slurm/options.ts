import { RelayError } from "../../domain/errors.ts";
import type { SchedulerRequest } from "../../domain/scheduler.ts";

/** sbatch(1)'s options, of 20.11 to 25.11, that take no value, or one only in the same word. All others take the next word where theirs has none. */
const WITHOUT_VALUE: ReadonlySet<string> = new Set([
  ...["consolidate-segments", "contiguous", "disable-status", "exclusive", "external", "external-launcher", "get-user-env", "help", "hold"],
  ...[
    "ignore-pbs",
    "no-kill",
    "no-requeue",
    "nice",
    "oom-kill-step",
    "overcommit",
    "oversubscribe",
    "parsable",
    "propagate",
    "quiet",
    "reboot",
  ],
  ...[
    "requeue",
    "resv-ports",
    "share",
    "spread-job",
    "spread-segments",
    "stepmgr",
    "test-only",
    "usage",
    "use-min-nodes",
    "verbose",
    "version",
  ],
  ...["wait"],
]);
const SHORT_WITHOUT_VALUE: ReadonlySet<string> = new Set([..."EHIKOQVWXZhksv"]);

/** What the relay says itself, or what keeps a job from being submitted as one job under its name. */
const OWN: ReadonlyMap<string, string> = new Map([
  ["job-name", "J"],
  ["output", "o"],
  ["error", "e"],
  ["input", "i"],
  ["chdir", "D"],
  ["workdir", "D"],
  ["array", "a"],
  ["wait", "W"],
  ["help", "h"],
  ["version", "V"],
  ["requeue", ""],
  ["no-requeue", ""],
  ["open-mode", ""],
  ["parsable", ""],
  ["wrap", ""],
  ["test-only", ""],
  ["usage", ""],
]);

/** Whole names that begin like one of OWN's. */
const OTHERS: ReadonlySet<string> = new Set([...WITHOUT_VALUE, "wait-all-nodes", "jobid", "input-file"].filter((name) => !OWN.has(name)));

/** One option, as words of a command line. */
export interface SlurmOption {
  /** Long without dashes, or one letter. */
  readonly name: string;
  readonly value: string | null;
  readonly words: readonly string[];
}

/** The options in a row of words. @throws RelayError job_submission_refused for a word that is none */
export function readOptions(words: readonly string[]): SlurmOption[] {
  const options: SlurmOption[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    const long = /^--([A-Za-z][\w-]*)(?:=(.*))?$/s.exec(word);
    if (long !== null) {
      const name = long[1]!;
      const apart = long[2] === undefined && !WITHOUT_VALUE.has(name) && at + 1 < words.length;
      const value = long[2] ?? (apart ? words[++at]! : null);
      options.push({ name, value, words: apart ? [word, value!] : [word] });
      continue;
    }
    if (!/^-[A-Za-z]/.test(word)) throw refused(`"${word}" is no option of sbatch`);
    options.push(...shortOptions(word, () => words[++at] ?? null));
  }
  return options;
}

/** `-HJname`, as getopt(3) takes it apart. */
function shortOptions(word: string, next: () => string | null): SlurmOption[] {
  const options: SlurmOption[] = [];
  for (let at = 1; at < word.length; at++) {
    const name = word[at]!;
    const rest = word.slice(at + 1);
    if (SHORT_WITHOUT_VALUE.has(name)) {
      // k and s may have one, which is the rest of the word.
      if (/^[ks]$/.test(name) && rest !== "") return [...options, { name, value: rest, words: [`-${name}${rest}`] }];
      options.push({ name, value: null, words: [`-${name}`] });
      continue;
    }
    const value = rest === "" ? next() : rest;
    return [...options, { name, value, words: rest === "" && value !== null ? [`-${name}`, value] : [`-${name}${rest}`] }];
  }
  return options;
}

/** Whether the relay sets what an option says. Long names may be shortened (getopt_long(3)). */
export function isOwn({ name, value }: SlurmOption): boolean {
  if ((name === "d" || name === "dependency") && (value ?? "").split(/[,?]/).includes("singleton")) return true;
  if (name.length === 1) return [...OWN.values()].includes(name);
  return OWN.has(name) || (!OTHERS.has(name) && [...OWN.keys()].some((own) => own.startsWith(name)));
}

const isArray = ({ name }: SlurmOption): boolean => name === "a" || (name.length > 1 && "array".startsWith(name));

/** @throws RelayError job_submission_refused where some of these are an array */
export function refuseArray(options: readonly SlurmOption[]): void {
  if (options.some(isArray)) throw refused("an array is many jobs, and each has to be submitted as one");
}

/** @param said the option as the user says it. @throws RelayError job_submission_refused for what the relay sets itself */
export function refuseOwn(option: SlurmOption, said: string): void {
  refuseArray([option]);
  if (isOwn(option))
    throw refused(`clio-relay says ${said.split("=", 1)[0]} of its jobs itself, or could not tell them without it; leave it out`);
}

/** Options that somebody else hands to sbatch for a job of ours. @throws RelayError job_submission_refused */
export function checkWords(words: readonly string[]): void {
  const options = words.flatMap((word) => readOptions([word]));
  for (const option of options) if (option.name !== "no-requeue") refuseOwn(option, option.words.join(" "));
  clustersOf(options);
}

/** The clusters that some options name, in order. The last option counts. @throws RelayError job_submission_refused for all of them */
export function clustersOf(options: readonly SlurmOption[]): readonly string[] {
  const value = options.findLast(({ name }) => name === "M" || name === "clusters")?.value ?? "";
  const names = value.split(",").filter((name) => name !== "");
  if (names.some((name) => name.toLowerCase() === "all"))
    throw refused("--clusters has to name the clusters, so that the job can be found again");
  return names;
}

/**
 * A request's further options, in the order in which they came.
 *
 * @throws RelayError job_submission_refused for what the relay sets itself, and for what would be read as another part of the command line
 */
export function checkedOptions(request: SchedulerRequest): readonly SlurmOption[] {
  if (request.parallel_environment !== null) throw refused("SLURM has no parallel environments; --ntasks and --nodes say what is needed");
  const all = request.options.flatMap((word) => {
    const options = readOptions([word]);
    for (const option of options) {
      refuseOwn(option, word);
      const long = option.name.length > 1;
      const wants = long ? !WITHOUT_VALUE.has(option.name) : !SHORT_WITHOUT_VALUE.has(option.name);
      if (option.value === null && wants)
        throw refused(`${word} lacks its value, which has to be part of the same argument: ${long ? `${word}=VALUE` : `${word}VALUE`}`);
    }
    return options;
  });
  clustersOf(all);
  return all;
}

const refused = (message: string): RelayError => new RelayError("job_submission_refused", message);
