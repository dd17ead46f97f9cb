import type { SchedulerPhase } from "../../domain/scheduler.ts";
import type { Row } from "../rows.ts";
import { count, words } from "../status.ts";

/** qacct takes one id, or name, in a call. */
export const qacctCommand = (idOrName: string): readonly [string, ...string[]] => ["qacct", "-j", idOrName];

/** Values that say nothing. */
const NOTHING = ["NONE", "undefined", "-/-"];
/** Set by a shell, and by Grid Engine, for a job that a signal has ended. */
const BY_SIGNAL = 128;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The records that `qacct -j` printed (accounting(5)), with TZ=UTC in its environment; each begins with a line of equals signs. */
export function readQacct(text: string): Row[] {
  return text
    .split(/^={20,}$/m)
    .slice(1)
    .flatMap((record) => readRecord(record) ?? []);
}

function readRecord(record: string): Row | null {
  const fields = new Map<string, string>();
  for (const [, key, value] of record.matchAll(/^(\w+)[ \t]+(.*)$/gm)) if (!fields.has(key!)) fields.set(key!, value!.trim());
  const of = (key: string): string | undefined => fields.get(key);
  const raw = of("jobnumber") ?? "";
  const exit = /^\d+/.exec(of("exit_status") ?? "");
  const failed = /^\d+/.exec(of("failed") ?? "");
  if (!/^\d{1,10}$/.test(raw) || exit === null || failed === null) return null;
  const status = Number(exit[0]);
  const signaled = status > BY_SIGNAL && status < 2 * BY_SIGNAL;
  const element = of("taskid") ?? "";
  const phase = phaseOf(Number(failed[0]), status, of("deleted_by"));
  return {
    raw,
    shown: /^\d+$/.test(element) ? `${raw}_${element}` : raw,
    name: of("jobname") ?? "",
    phase,
    queue: of("qname") ?? "",
    submitted: of("qsub_time") ?? "",
    answers: {
      phase,
      raw_state: words(`failed ${failed[0]}, exit_status ${status}`),
      reason: words(of("failed")?.replace(/^\d+\s*:?\s*/, "")),
      name: words(of("jobname")),
      partition: words(of("qname"), NOTHING),
      account: words(of("project"), NOTHING),
      user: words(of("owner")),
      nodes: words(of("hostname"), NOTHING),
      cpus: count(of("slots")),
      memory: words(of("maxvmem")),
      exit_code: signaled ? null : status,
      signal: signaled ? status - BY_SIGNAL : null,
      submit_time: instant(of("qsub_time")),
      start_time: instant(of("start_time")),
      end_time: instant(of("end_time")),
      elapsed_seconds: count(/^\d+/.exec(of("ru_wallclock") ?? "")?.[0]),
    },
  };
}

/** Who deleted it stands in the records of some releases only; in the others a deleted job looks like any that a signal has ended. */
function phaseOf(failed: number, status: number, deletedBy: string | undefined): SchedulerPhase {
  if (words(deletedBy, NOTHING) !== null) return "canceled";
  return failed === 0 && status === 0 ? "completed" : "failed";
}

/** `Mon Nov 30 16:14:18 2026`, or `11/30/2026 16:14:18.123`. */
function instant(text: string | undefined): string | null {
  const ctime = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/.exec(text ?? "");
  const slashed = /^(\d{2})\/(\d{2})\/(\d{4}) (\d{2}):(\d{2}):(\d{2})(?:\.\d+)?$/.exec(text ?? "");
  const at =
    ctime !== null
      ? Date.UTC(Number(ctime[6]), MONTHS.indexOf(ctime[1]!), Number(ctime[2]), Number(ctime[3]), Number(ctime[4]), Number(ctime[5]))
      : slashed !== null
        ? Date.UTC(
            Number(slashed[3]),
            Number(slashed[1]) - 1,
            Number(slashed[2]),
            Number(slashed[4]),
            Number(slashed[5]),
            Number(slashed[6]),
          )
        : Number.NaN;
  return Number.isNaN(at) || at === 0 ? null : new Date(at).toISOString();
}
