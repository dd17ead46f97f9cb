import type { Outcome } from "../../../../domain/job.ts";
import type { SchedulerStatus } from "../../../../domain/scheduler.ts";
import type { ExecutionRecord } from "../../../../execution/jarvis/documents.ts";
import { untrusted, type Verdict } from "../../../../execution/jarvis/verdict.ts";
import { endedAs, endedFor, saidOf } from "../../allocation/words.ts";

/**
 * How a pipeline in an allocation ended: the scheduler's word on the end of its job comes before JARVIS' record (docs/jarvis.md).
 *
 * @param status of a job that has ended; null where the scheduler knows nothing of it any more
 * @param record null where JARVIS has none that is understood
 */
export function allocationVerdict(status: SchedulerStatus | null, record: ExecutionRecord | null, canceling: boolean): Verdict {
  const jarvis =
    record === null ? "JARVIS has no record of it" : `JARVIS says ${record.state}${record.error === null ? "" : `: ${record.error}`}`;
  if (status === null) {
    const doubt = untrusted("the scheduler knows nothing of the job any more; how it ended is JARVIS' word alone");
    const terminal = record?.terminal === true;
    if (!terminal)
      return {
        outcome: endedAs(canceling ? "canceled" : "outcome_unknown", `the scheduler knows nothing of the job any more, and ${jarvis}`),
        events: [],
      };
    return { outcome: byRecord(record, jarvis), events: [doubt] };
  }
  const said = saidOf(status);
  const why = endedFor(status, status.time_limit_seconds);
  if (why !== null) {
    const contradicts = record?.state === "completed" ? [untrusted(`${jarvis}, but ${said}`)] : [];
    return {
      outcome: endedAs(why, `${why === "canceled" && !canceling ? "canceled at the scheduler; " : ""}${said}`),
      events: contradicts,
    };
  }
  if (status.phase !== "completed") return { outcome: endedAs("engine_failed", `${said}; ${jarvis}`, status.exit_code), events: [] };
  if (record === null || !record.terminal)
    return {
      outcome: endedAs("engine_failed", `${said}, but ${jarvis}: its pipeline did not come to an end`, status.exit_code),
      events: [],
    };
  return { outcome: byRecord(record, jarvis), events: [] };
}

/**
 * When a run in an allocation ended: by the scheduler, else by JARVIS' record. Both have clocks of their own, so that it is never before its submission had ended,
 * nor in the future.
 *
 * @param now as the submission's end, by this host's clock; also what is answered where nobody says
 */
export function allocationEnd(
  submitted: string,
  { status, record, now }: { readonly status: SchedulerStatus | null; readonly record: ExecutionRecord | null; readonly now: string },
): string {
  const told = status?.end_time ?? (record?.terminal === true ? record.updated_at : null);
  if (told === null) return now;
  const at = Math.min(Math.max(Date.parse(told), Date.parse(submitted)), Date.parse(now));
  return new Date(at).toISOString();
}

function byRecord(record: ExecutionRecord, jarvis: string): Outcome {
  if (record.state === "completed") return endedAs("completed", jarvis, 0);
  return endedAs(record.state === "canceled" ? "canceled" : "engine_failed", jarvis, code(record.return_code));
}

const code = (value: number | null): number | null => (value !== null && value >= 0 && value <= 255 ? value : null);
