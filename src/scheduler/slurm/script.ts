import { RelayError } from "../../domain/errors.ts";
import type { SchedulerRequest } from "../../domain/scheduler.ts";
import { directiveWord, directiveWords } from "../directive-words.ts";
import { checkedOptions, clustersOf, isOwn, readOptions, type SlurmOption } from "./options.ts";

/** The options of a script's `#SBATCH` lines, up to the first line that is neither empty nor a comment (sbatch(1)). */
export function directivesOf(script: string): SlurmOption[] {
  const words: string[] = [];
  for (const line of script.split("\n")) {
    if (line.startsWith("#SBATCH")) {
      const found = directiveWords(line.slice("#SBATCH".length).replace(/\r$/, ""));
      if (found === null) throw refused(`a quote does not end in: ${line}`);
      if (/^(?:het|pack)job$/i.test(found[0] ?? "")) throw refused("a heterogeneous job is several; submit its parts");
      words.push(...found);
    } else if (!/^\s*(?:#|$)/.test(line)) break;
  }
  return readOptions(words);
}

/** The batch script: the user's directives without those that the relay sets, then `lines`. An array is refused: it is many jobs. */
export function batchScript(
  request: SchedulerRequest,
  userScript: string | null,
  lines: readonly string[],
): { readonly text: string; readonly removed: readonly string[] } {
  checkedOptions(request);
  const directives = meant(request, userScript);
  if (directives.some(({ name }) => name === "a" || (name.length > 1 && "array".startsWith(name)))) {
    throw refused("an array is many jobs, and each has to be submitted as one");
  }
  clustersOf(directives);
  const kept = directives.filter((option) => !isOwn(option));
  const removed = directives.filter(isOwn).map(({ words }) => words.join(" "));
  const written = kept.map(({ words }) => `#SBATCH ${words.map(directiveWord).join(" ")}`);
  return { text: `${["#!/bin/sh", ...written, ...lines].join("\n")}\n`, removed };
}

/** The clusters that a request names; those of its options win. */
export function requestedClusters(request: SchedulerRequest, userScript: string | null): readonly string[] {
  const named = clustersOf(checkedOptions(request));
  return named.length > 0 ? named : clustersOf(meant(request, userScript));
}

const meant = (request: SchedulerRequest, userScript: string | null): SlurmOption[] =>
  request.directives && userScript !== null ? directivesOf(userScript) : [];

const refused = (message: string): RelayError => new RelayError("job_submission_refused", message);
