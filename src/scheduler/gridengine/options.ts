import { RelayError } from "../../domain/errors.ts";
import type { SchedulerRequest } from "../../domain/scheduler.ts";
import { directiveWords } from "../directive-words.ts";

/** One option with its values, as words of a command line. */
export type GridEngineOption = readonly [string, ...string[]];

/** What the relay says itself (qsub(1)), or what keeps a job from being submitted as one job under its name. */
const OWN: ReadonlySet<string> = new Set([
  ...["-N", "-o", "-e", "-i", "-j", "-wd", "-cwd", "-r", "-S", "-b", "-shell", "-sync", "-now", "-terse", "-t", "-tc", "-C", "-clear"],
  ...["-help", "-verify", "-xml", "-@", "-notify"],
]);
const ARRAY: ReadonlySet<string> = new Set(["-t"]);

/** The options in a row of words: each with what follows it up to the next one. A negative number is a value. @throws RelayError job_submission_refused */
export function readOptions(words: readonly string[]): GridEngineOption[] {
  const options: [string, ...string[]][] = [];
  for (const word of words) {
    if (/^-[A-Za-z@]/.test(word)) options.push([word]);
    else if (options.length === 0) throw refused(`"${word}" is no option of qsub`);
    else options.at(-1)!.push(word);
  }
  return options;
}

/** Whether the relay sets what an option says. `-w v` and `-w p` submit nothing. */
export const isOwn = ([name, value]: GridEngineOption): boolean =>
  OWN.has(name) || (name === "-w" && value !== "e" && value !== "w" && value !== "n");

/** @throws RelayError job_submission_refused where some of these are an array */
export function refuseArray(options: readonly GridEngineOption[]): void {
  if (options.some(([name]) => ARRAY.has(name))) throw refused("an array is many jobs, and each has to be submitted as one");
}

/** A request's further options: each is one with its values behind it, as in a line of directives. @throws RelayError job_submission_refused */
export function checkedOptions(request: SchedulerRequest): GridEngineOption[] {
  return request.options.flatMap((text) => {
    const words = directiveWords(text);
    if (words === null || words.length === 0) throw refused(`a quote does not end in: ${text}`);
    const options = readOptions(words);
    refuseArray(options);
    for (const option of options)
      if (isOwn(option)) throw refused(`clio-relay says ${option[0]} of its jobs itself, or could not tell them without it; leave it out`);
    return options;
  });
}

export const refused = (message: string): RelayError => new RelayError("job_submission_refused", message);
