import { SCHEDULER_JOB_NAME, type SchedulerRequest } from "../../domain/scheduler.ts";
import { directiveWord, directiveWords } from "../directive-words.ts";
import { commaList, exportedVariables } from "../exported.ts";
import type { BatchJob, BatchScript } from "../provider.ts";
import { checkedOptions, type GridEngineOption, isOwn, readOptions, refuseArray, refused } from "./options.ts";

/** The options of a script's `#$` lines, wherever they are in it (qsub(1), -C). */
function directivesOf(script: string): GridEngineOption[] {
  const words: string[] = [];
  for (const line of script.split("\n")) {
    if (!line.startsWith("#$")) continue;
    const found = directiveWords(line.slice(2).replace(/\r$/, ""));
    if (found === null) throw refused(`a quote does not end in: ${line}`);
    words.push(...found);
  }
  return readOptions(words);
}

/** The batch script: the user's directives without those that the relay sets, then `lines`. @throws RelayError job_submission_refused */
export function batchScript(request: SchedulerRequest, userScript: string | null, lines: readonly string[]): BatchScript {
  requested(request);
  const options = checkedOptions(request);
  const directives = request.directives && userScript !== null ? directivesOf(userScript) : [];
  refuseArray(directives);
  const written = directives.filter((option) => !isOwn(option)).map((option) => `#$ ${option.map(directiveWord).join(" ")}`);
  const exported = [...directives, ...options].flatMap(([name, ...values]) => (name === "-v" ? values.flatMap(commaList) : []));
  const said = directives.findLast(([option]) => option === "-N")?.[1] ?? "";
  const name = request.name ?? (SCHEDULER_JOB_NAME.test(said) ? said : null);
  const isName = ([option, value]: GridEngineOption): boolean => option === "-N" && value === name;
  return {
    text: `${["#!/bin/sh", ...written, ...lines].join("\n")}\n`,
    name,
    removed: directives.filter((option) => isOwn(option) && !isName(option)).map((option) => option.join(" ")),
    variables: exportedVariables(exported),
  };
}

/** The command line of a submission: what the user says first, so that the last word is the request's, and then ours. @throws RelayError job_submission_refused */
export function submitCommand({ request, marker, script, output, workdir }: BatchJob): readonly [string, ...string[]] {
  // qsub(1): `host:path`, lists and variables.
  if (/[:,$]/.test(output)) throw refused(`Grid Engine cannot write to a path with one of : , $ in it: ${output}`);
  const options = checkedOptions(request).flat();
  return [
    "qsub",
    ...options,
    // What follows -soft is a wish; the time limit is none.
    ...(options.includes("-soft") ? ["-hard"] : []),
    ...requested(request),
    ...[
      "-terse",
      "-N",
      marker,
      "-o",
      output,
      "-j",
      "y",
      "-i",
      "/dev/null",
      "-wd",
      workdir,
      "-r",
      "n",
      "-sync",
      "n",
      "-b",
      "n",
      "-S",
      "/bin/sh",
    ],
    script,
  ];
}

/** What a request names that Grid Engine has no word of its own for: sites call it differently. */
const OF_THE_SITE = {
  gpus: "-l gpu=NUMBER",
  memory_bytes: "-l h_vmem=SIZE",
  constraint: "-l NAME=VALUE",
  qos: "-p PRIORITY",
  exclusive: "-l exclusive=true",
  nodes: "-pe NAME SLOTS",
} as const;

function requested(request: SchedulerRequest): string[] {
  const { tasks, cpus_per_task, parallel_environment, time_limit_seconds, partition, account, reservation } = request;
  for (const [field, option] of Object.entries(OF_THE_SITE)) {
    const value = request[field as keyof typeof OF_THE_SITE];
    if (value === null || value === false || (field === "nodes" && value === 1)) continue;
    throw refused(`Grid Engine has no common word for ${field}; name what this site has as an option, such as "${option}"`);
  }
  const slots = (tasks ?? 1) * (cpus_per_task ?? 1);
  if (slots > 1 && parallel_environment === null)
    throw refused("several slots of Grid Engine are those of a parallel environment; name one");
  return [
    ...(parallel_environment === null ? [] : ["-pe", parallel_environment, String(slots)]),
    ...(time_limit_seconds === null ? [] : ["-l", `h_rt=${time_limit_seconds}`]),
    ...(partition === null ? [] : ["-q", partition]),
    ...(account === null ? [] : ["-P", account]),
    ...(reservation === null ? [] : ["-ar", reservation]),
  ];
}
