import { RelayError } from "../../domain/errors.ts";
import type { SchedulerName, SchedulerRequest } from "../../domain/scheduler.ts";
import { parseMemory, parseWallTime } from "../../lib/text/quantity.ts";
import { oneOf, type Reader, text, whole } from "../values.ts";
import { also, type FlagValues, list, option } from "../verb.ts";

const LONGEST_SECONDS = 366 * 86_400;

const wallTime: Reader<number> = {
  label: "TIME",
  form: "a time as sbatch takes it: [DAYS-]HH:MM:SS, MM:SS or minutes; or one such as 30m or 2h; at most 366 days",
  read(given) {
    const seconds = parseWallTime(given);
    return seconds === null || seconds > LONGEST_SECONDS ? undefined : seconds;
  },
};

const memory: Reader<number> = {
  label: "SIZE",
  form: "an amount of memory as sbatch takes it: 4G, 512M, or a number of mebibytes",
  read: (given) => parseMemory(given) ?? undefined,
};

const word = (label: string): Reader<string> => ({
  label,
  form: "one word, and no option",
  read: (given) => (/^[^\s-]\S{0,255}$/.test(given) ? given : undefined),
});

const jobName: Reader<string> = {
  label: "NAME",
  form: "a word of letters, digits, `_`, `.` and `-` that begins with a letter, of at most 64",
  read: (given) => (/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(given) ? given : undefined),
};

const schedulerOption: Reader<string> = {
  label: "OPTION",
  form: "an option of sbatch or qsub, such as --mail-type=END",
  read: (given) => (given.startsWith("-") && given.length <= 4_096 && !given.includes("\0") ? given : undefined),
};

const count = whole(1, 1_000_000);

/** What a command job may ask of a scheduler. */
export const SCHEDULER = {
  scheduler: option(oneOf("slurm", "gridengine", "auto"), "Run it in an allocation of this scheduler; auto is the cluster's own"),
  sbatch: option(text("FILE"), "Run this script in an allocation of SLURM, with its #SBATCH lines; options here win over them"),
  qsub: option(text("FILE"), "The same for Grid Engine, with its #$ lines"),
  nodes: option(count, "Nodes"),
  ntasks: also(option(count, "Tasks; of Grid Engine, slots of the parallel environment"), "tasks"),
  "cpus-per-task": option(count, "CPUs of each task"),
  gpus: option(count, "GPUs of the whole job"),
  mem: option(memory, "Memory on each node"),
  time: option(wallTime, "Time limit of the allocation"),
  partition: also(option(word("NAME"), "Partition; of Grid Engine, queue"), "queue"),
  account: also(option(word("NAME"), "Account; of Grid Engine, project"), "project"),
  qos: option(word("NAME"), "Quality of service"),
  constraint: option(word("FEATURES"), "Features that nodes have to have"),
  reservation: option(word("NAME"), "Reservation"),
  "parallel-environment": also(option(word("NAME"), "Parallel environment of Grid Engine, of which --ntasks slots are taken"), "pe"),
  "job-name": option(jobName, "What its name there begins with; a mark that finds it again follows"),
  "scheduler-option": list(schedulerOption, "A further option in the scheduler's own words, --scheduler-option=--mail-type=END"),
} as const;

export type SchedulerFlags = FlagValues<typeof SCHEDULER>;

const { sbatch: _sbatch, qsub: _qsub, ...withoutScripts } = SCHEDULER;
/** The same for what has no script of its own. */
export const ALLOCATION = withoutScripts;

interface Around {
  readonly exclusive: boolean;
  readonly timeout: number | undefined;
}

/**
 * What the options ask of a scheduler; undefined where none is to run the job.
 *
 * @throws RelayError usage for options that do not go together
 */
export function requestOf(flags: SchedulerFlags & Around): Partial<SchedulerRequest> | undefined {
  const provider = providerOf(flags);
  const asked = askedOf(flags);
  if (provider === undefined) {
    const first = Object.keys(asked)[0];
    if (first === undefined) return undefined;
    const hint = "--scheduler auto asks the cluster's own scheduler for an allocation";
    throw new RelayError("usage", `--${OPTION_OF[first] ?? first} is for work that a scheduler runs`, {}, hint);
  }
  if (flags.timeout !== undefined) {
    const hint = "--time 01:00:00 is the limit of the allocation, which the scheduler keeps";
    throw new RelayError("usage", "--timeout does not go with a scheduler: no deadline of clio-relay ends its work", {}, hint);
  }
  const directives = flags.sbatch !== undefined || flags.qsub !== undefined;
  return { ...(provider === null ? {} : { provider }), ...asked, ...(directives ? { directives } : {}) };
}

/** Null is the cluster's own; undefined none. */
function providerOf({ scheduler, sbatch, qsub }: SchedulerFlags): SchedulerName | null | undefined {
  const [file, own] = sbatch === undefined ? ["--qsub", "gridengine" as const] : ["--sbatch", "slurm" as const];
  if (sbatch === undefined && qsub === undefined) return scheduler === "auto" ? null : scheduler;
  if (scheduler !== undefined && scheduler !== "auto" && scheduler !== own) {
    throw new RelayError("usage", `${file} is for ${own}, and --scheduler says ${scheduler}`);
  }
  return own;
}

/** Members of the request whose options have another name. */
const OPTION_OF: Readonly<Record<string, string>> = {
  name: "job-name",
  tasks: "ntasks",
  cpus_per_task: "cpus-per-task",
  memory_bytes: "mem",
  time_limit_seconds: "time",
  parallel_environment: "parallel-environment",
  options: "scheduler-option",
};

function askedOf(flags: SchedulerFlags & Around): Partial<SchedulerRequest> {
  const { nodes, gpus, partition, account, qos, constraint, reservation } = flags;
  const all = {
    nodes,
    tasks: flags.ntasks,
    cpus_per_task: flags["cpus-per-task"],
    gpus,
    memory_bytes: flags.mem,
    time_limit_seconds: flags.time,
    partition,
    account,
    qos,
    constraint,
    reservation,
    parallel_environment: flags["parallel-environment"],
    name: flags["job-name"],
    exclusive: flags.exclusive ? true : undefined,
    options: flags["scheduler-option"].length === 0 ? undefined : [...flags["scheduler-option"]],
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
