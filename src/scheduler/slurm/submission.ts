import { RelayError } from "../../domain/errors.ts";
import type { SchedulerRequest } from "../../domain/scheduler.ts";
import type { BatchJob, NativeJob } from "../provider.ts";
import { readNative } from "./ids.ts";
import { checkedOptions } from "./options.ts";

/** What the site's configuration decides of a submission. */
export interface SubmitWays {
  /** Whether GPUs can be asked for as a number of the job (select/cons_tres); else they are asked for per node. */
  readonly gpusPerJob: boolean;
}

/**
 * The command line of a submission. What the user says comes first, so that the last word is the request's, and then ours; `--parsable` stands twice, because an
 * option that lacks its value would take the first.
 *
 * @throws RelayError job_submission_refused
 */
export function submitCommand(job: BatchJob, ways: SubmitWays): readonly [string, ...string[]] {
  const { request, marker, script, output, workdir } = job;
  return [
    "sbatch",
    ...checkedOptions(request).flatMap(({ words }) => words),
    "--parsable",
    "--parsable",
    ...requested(request, ways),
    `--job-name=${marker}`,
    `--output=${literally(output)}`,
    `--error=${literally(output)}`,
    "--open-mode=append",
    "--input=/dev/null",
    `--chdir=${workdir}`,
    "--no-requeue",
    script,
  ];
}

/** A path as a file name pattern of sbatch(1) that replaces nothing: `%%` is a percent sign; after a backslash none is a symbol, and it has to be two (measured with SLURM 22.05). */
const literally = (file: string): string => (file.includes("\\") ? file.replaceAll("\\", "\\\\") : file.replaceAll("%", "%%"));

function requested(request: SchedulerRequest, { gpusPerJob }: SubmitWays): string[] {
  const {
    nodes,
    tasks,
    cpus_per_task,
    gpus,
    memory_bytes,
    time_limit_seconds,
    partition,
    account,
    qos,
    constraint,
    reservation,
    exclusive,
  } = request;
  const option = (name: string, value: string | number | null): string[] => (value === null ? [] : [`--${name}=${value}`]);
  const wholeNodes = Math.max(1, nodes ?? 1);
  if (!gpusPerJob && gpus !== null && gpus % wholeNodes !== 0) {
    throw new RelayError(
      "job_submission_refused",
      `this SLURM gives GPUs per node, and ${gpus} are not the same number on each of ${wholeNodes} nodes`,
    );
  }
  const perNode = gpus === null ? null : gpus / wholeNodes;
  return [
    ...option("nodes", nodes),
    ...option("ntasks", tasks),
    ...option("cpus-per-task", cpus_per_task),
    ...(gpusPerJob ? option("gpus", gpus) : option("gres", perNode === null ? null : `gpu:${perNode}`)),
    ...option("mem", memory_bytes === null ? null : `${Math.ceil(memory_bytes / 1024)}K`),
    ...option("time", time_limit_seconds === null ? null : timeOf(time_limit_seconds)),
    ...option("partition", partition),
    ...option("account", account),
    ...option("qos", qos),
    ...option("constraint", constraint),
    ...option("reservation", reservation),
    ...(exclusive ? ["--exclusive"] : []),
  ];
}

/** days-hours:minutes:seconds */
function timeOf(total: number): string {
  const two = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  return `${Math.floor(total / 86_400)}-${two((total % 86_400) / 3_600)}:${two((total % 3_600) / 60)}:${two(total % 60)}`;
}

/** The job that a line of `sbatch --parsable` names: `123`, or `123;cluster`. */
export const submittedIn = (line: string): NativeJob | null => (/^\d{1,10}(?:;\S+)?\s*$/.test(line) ? readNative(line) : null);
