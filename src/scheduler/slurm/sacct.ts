import { isEnd } from "../phases.ts";
import type { Row } from "../rows.ts";
import { count, words } from "../status.ts";
import { fieldsOf } from "./fields.ts";
import { phaseOf } from "./states.ts";
import { exitCode, instant, NOTHING } from "./values.ts";

/** sacct(1), `--format`: fields that every release from 20.11 to 25.11 has. One unknown field, and it prints nothing. */
const FIELDS = [
  ...([
    "JobIDRaw",
    "JobID",
    "State",
    "ExitCode",
    "Partition",
    "QOS",
    "Account",
    "User",
    "NNodes",
    "AllocCPUS",
    "ReqMem",
    "NodeList",
  ] as const),
  ...(["Submit", "Eligible", "Start", "End", "ElapsedRaw", "TimelimitRaw", "JobName"] as const),
];

/** The name that a job has in its first row, until the accounts have heard of its own. */
const SKETCH = "allocation";

export type SacctChoice =
  | { readonly ids: readonly string[] }
  /** Jobs of a name that were there since a moment, in milliseconds since the epoch. Without one it would answer for today. */
  | { readonly name: string; readonly since: number };

/** Jobs only, no steps. */
export function sacctCommand(choice: SacctChoice, cluster: string | null, delimiter: string): readonly [string, ...string[]] {
  const where = cluster === null ? ["--federation"] : [`--clusters=${cluster}`];
  const which =
    "ids" in choice
      ? [`--jobs=${choice.ids.join(",")}`]
      : [`--name=${choice.name}`, `--starttime=${new Date(choice.since).toISOString().slice(0, 19)}`];
  return [
    "sacct",
    "--noheader",
    "--parsable2",
    `--delimiter=${delimiter}`,
    "--allocations",
    ...where,
    ...which,
    `--format=${FIELDS.join(",")}`,
  ];
}

/** What sacct printed. Null where it has another form. */
export function readSacct(text: string, delimiter: string): Row[] | null {
  const rows = fieldsOf(text, delimiter, FIELDS.length)?.map(readRow);
  // A step has a point in its id.
  return rows?.filter(({ raw, shown }) => !raw.includes(".") && !shown.includes(".")) ?? null;
}

function readRow(fields: readonly string[]): Row {
  const of = (name: (typeof FIELDS)[number]): string => fields[FIELDS.indexOf(name)]!;
  const state = of("State");
  const phase = phaseOf(state);
  const minutes = count(of("TimelimitRaw"));
  const nodes = words(of("NNodes"), ["0"]);
  return {
    raw: of("JobIDRaw").trim(),
    shown: of("JobID").trim(),
    name: of("JobName"),
    phase,
    queue: `${of("Partition")} ${of("QOS")}`,
    submitted: of("Submit"),
    answers: {
      phase,
      raw_state: words(state),
      name: words(of("JobName"), [...NOTHING, SKETCH]),
      partition: words(of("Partition"), NOTHING),
      qos: words(of("QOS"), NOTHING),
      account: words(of("Account"), NOTHING),
      user: words(of("User"), NOTHING),
      nodes: words(of("NodeList"), NOTHING) ?? nodes,
      cpus: count(of("AllocCPUS")),
      memory: words(of("ReqMem"), [...NOTHING, "0"]),
      ...(isEnd(phase) ? exitCode(of("ExitCode")) : {}),
      submit_time: instant(of("Submit")),
      eligible_time: instant(of("Eligible")),
      start_time: instant(of("Start")),
      end_time: instant(of("End")),
      elapsed_seconds: count(of("ElapsedRaw")),
      time_limit_seconds: minutes === null ? null : minutes * 60,
    },
  };
}
