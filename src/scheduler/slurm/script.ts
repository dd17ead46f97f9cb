import { RelayError } from "../../domain/errors.ts";
import { SCHEDULER_JOB_NAME, type SchedulerRequest } from "../../domain/scheduler.ts";
import { directiveWord, directiveWords } from "../directive-words.ts";
import { exportedVariables, quotedCommaList } from "../exported.ts";
import type { BatchScript } from "../provider.ts";
import { checkedOptions, clustersOf, isOwn, readOptions, refuseArray, type SlurmOption } from "./options.ts";

/** What the lines before a script's first command say. */
interface Directives {
  /** Of its `#SBATCH` lines. */
  readonly options: readonly SlurmOption[];
  /** Lines for the site's burst buffers, as they are (sbatch(1), --bb; slurm.conf(5), burst_buffer). */
  readonly buffers: readonly string[];
}

/** Of these sbatch takes one, wherever it is said. */
const MEMORY: ReadonlySet<string> = new Set(["mem", "mem-per-cpu", "mem-per-gpu"]);

const NONE: Directives = { options: [], buffers: [] };
const BUFFER = /^#(?:BB|DW|BB_LUA)[ \t]/;

/** The directives of a script, up to the first line that is neither empty nor a comment (sbatch(1)). */
function directivesOf(script: string): Directives {
  const words: string[] = [];
  const buffers: string[] = [];
  for (const line of script.split("\n")) {
    if (BUFFER.test(line)) buffers.push(line.replace(/\r$/, ""));
    else if (line.startsWith("#SBATCH")) {
      const found = directiveWords(line.slice("#SBATCH".length).replace(/\r$/, ""));
      if (found === null) throw refused(`a quote does not end in: ${line}`);
      if (/^(?:het|pack)job$/i.test(found[0] ?? "")) throw refused("a heterogeneous job is several; submit its parts");
      words.push(...found);
    } else if (!/^\s*(?:#|$)/.test(line)) break;
  }
  return { options: readOptions(words), buffers };
}

/** The batch script: the user's directives without those that the relay sets, then `lines`. An array is refused: it is many jobs. */
export function batchScript(request: SchedulerRequest, userScript: string | null, lines: readonly string[]): BatchScript {
  const options = checkedOptions(request);
  const { options: directives, buffers } = meant(request, userScript);
  refuseArray(directives);
  clustersOf(directives);
  const name = request.name ?? nameIn(directives);
  const isName = (option: SlurmOption): boolean => isJobName(option) && option.value === name;
  const isLeftOut = (option: SlurmOption): boolean => isOwn(option) || (request.memory_bytes !== null && MEMORY.has(option.name));
  const kept = directives.filter((option) => !isLeftOut(option));
  const removed = directives.filter((option) => isLeftOut(option) && !isName(option)).map(({ words }) => words.join(" "));
  const written = kept.map(({ words }) => `#SBATCH ${words.map(directiveWord).join(" ")}`);
  // The last one counts, and those of the command line win.
  const exported = [...directives, ...options].findLast(({ name }) => name === "export")?.value ?? "";
  return {
    text: `${["#!/bin/sh", ...written, ...buffers, ...lines].join("\n")}\n`,
    name,
    removed,
    variables: exportedVariables(quotedCommaList(exported)),
  };
}

const isJobName = ({ name }: SlurmOption): boolean => name === "J" || name === "job-name";

/** The job's name that a script says last, where it can be the beginning of ours. */
function nameIn(directives: readonly SlurmOption[]): string | null {
  const said = directives.findLast(isJobName)?.value ?? "";
  return SCHEDULER_JOB_NAME.test(said) ? said : null;
}

/** The clusters that a request names; those of its options win. */
export function requestedClusters(request: SchedulerRequest, userScript: string | null): readonly string[] {
  const named = clustersOf(checkedOptions(request));
  return named.length > 0 ? named : clustersOf(meant(request, userScript).options);
}

const meant = (request: SchedulerRequest, userScript: string | null): Directives =>
  request.directives && userScript !== null ? directivesOf(userScript) : NONE;

const refused = (message: string): RelayError => new RelayError("job_submission_refused", message);
