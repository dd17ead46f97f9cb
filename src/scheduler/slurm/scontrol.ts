import { isEnd } from "../phases.ts";
import type { Row } from "../rows.ts";
import { words } from "../status.ts";
import { hasNumber } from "./ids.ts";
import { phaseOf } from "./states.ts";
import { exitCode, instant, NOTHING, seconds } from "./values.ts";

/** All jobs that the controller remembers, each in a line. */
export function scontrolCommand(cluster: string | null): readonly [string, ...string[]] {
  return ["scontrol", ...(cluster === null ? [] : [`--clusters=${cluster}`]), "--oneliner", "show", "job"];
}

/**
 * What `scontrol --oneliner show job` printed. A job's name may hold anything, a line end and another job's record too: a number that two records claim counts for neither.
 */
export function readScontrol(text: string): Row[] {
  const rows = text
    .split(/^(?=JobId=)/m)
    .filter((record) => record.startsWith("JobId="))
    .flatMap((record) => readRecord(record) ?? [])
    .filter(hasNumber);
  const times = Map.groupBy(rows, ({ raw }) => raw);
  return rows.filter(({ raw }) => times.get(raw)!.length === 1);
}

function readRecord(record: string): Row | null {
  const of = (key: string): string | undefined => new RegExp(`(?:^|\\s)${key}=(\\S*)`).exec(record)?.[1];
  const raw = of("JobId") ?? "";
  const state = of("JobState") ?? "";
  const name = /\bJobName=(.*?) UserId=/s.exec(record)?.[1] ?? "";
  if (!/^\d{1,10}$/.test(raw) || state === "") return null;
  const array = of("ArrayJobId");
  const phase = phaseOf(state);
  const ended = isEnd(phase);
  return {
    raw,
    shown: array === undefined ? raw : shownOf(array, of("ArrayTaskId") ?? ""),
    name,
    phase,
    queue: `${of("Partition")} ${of("QOS")}`,
    submitted: of("SubmitTime") ?? "",
    answers: {
      phase,
      raw_state: words(state),
      reason: words(of("Reason"), NOTHING),
      name: words(name, NOTHING),
      partition: words(of("Partition"), NOTHING),
      qos: words(of("QOS"), NOTHING),
      account: words(of("Account"), NOTHING),
      user: words(of("UserId")?.replace(/\(.*$/, ""), NOTHING),
      nodes: words(of("NodeList"), NOTHING) ?? words(of("NumNodes")),
      ...(ended ? exitCode(of("ExitCode")) : {}),
      submit_time: instant(of("SubmitTime")),
      eligible_time: instant(of("EligibleTime")),
      start_time: phase === "pending" ? null : instant(of("StartTime")),
      end_time: ended ? instant(of("EndTime")) : null,
      elapsed_seconds: seconds(of("RunTime")),
      time_limit_seconds: seconds(of("TimeLimit")),
    },
  };
}

/** As squeue writes it. */
const shownOf = (array: string, elements: string): string => (/^\d+$/.test(elements) ? `${array}_${elements}` : `${array}_[${elements}]`);

/** `scontrol show config`, of which the controller's own settings count. */
export const CONFIG_COMMAND = ["scontrol", "show", "config"] as const;

/** One value of the configuration that scontrol printed; null where it is not said, or is said to be nothing. */
export function configValue(text: string, key: string): string | null {
  const line = text.split("\n").find((one) => one.startsWith(key) && /^\s*=/.test(one.slice(key.length)));
  return words(line?.slice(line.indexOf("=") + 1), NOTHING);
}

/** Whether a site keeps accounts: AccountingStorageType is (null), or accounting_storage/none, where it does not. */
export function keepsAccounts(text: string): boolean {
  return (configValue(text, "AccountingStorageType") ?? "accounting_storage/none") !== "accounting_storage/none";
}
