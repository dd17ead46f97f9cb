import type { SchedulerStatus } from "../../domain/scheduler.ts";
import type { JobScheduler } from "../../domain/views.ts";
import { wallTimeText } from "../../lib/text/quantity.ts";
import { agoText } from "./quantities.ts";
import { oneLine } from "./safe-text.ts";

type Line = readonly [name: string, value: string | null];

/** `pending (PENDING: Priority)`: the phase, and in the scheduler's own words what it is and why. */
export function phaseText({ phase, raw_state, reason }: Pick<SchedulerStatus, "phase" | "raw_state" | "reason">): string {
  const words = [raw_state, reason === "None" ? null : reason].filter((word) => word !== null && word !== "").map((word) => oneLine(word!));
  return words.length === 0 ? phase : `${phase} (${words.join(": ")})`;
}

/** `about 3 in partition debug, qos normal`; null where it does not wait, or nobody can count. */
export function positionText({ queue_position, queue_position_scope }: SchedulerStatus): string | null {
  if (queue_position === null) return null;
  return `about ${queue_position}${queue_position_scope === null ? "" : ` in ${oneLine(queue_position_scope)}`}`;
}

/** `00:12:40 of 04:00:00`: how long it has had its allocation, and may have it. */
function limitText({ phase, start_time, elapsed_seconds, time_limit_seconds }: SchedulerStatus, now: number): string | null {
  if (time_limit_seconds === null) return null;
  const limit = wallTimeText(time_limit_seconds);
  if (start_time === null || elapsed_seconds === null) return limit;
  // What was said last may be a minute old.
  const elapsed = phase === "running" ? Math.max(elapsed_seconds, Math.floor((now - Date.parse(start_time)) / 1_000)) : elapsed_seconds;
  return `${wallTimeText(elapsed)} of ${limit}`;
}

/** Lines on what a scheduler says of a job. */
export function observedLines(status: SchedulerStatus, now: number): Line[] {
  const { nodes, cpus, memory, partition, qos, account, exit_code, signal, observed_at } = status;
  const all = (parts: readonly (string | null)[]): string | null => parts.filter((part) => part !== null).join(", ") || null;
  const signaled = signal === null || signal === 0 ? null : `signal ${signal}`;
  return [
    ["place in its queue", positionText(status)],
    ["nodes", nodes === null ? null : oneLine(nodes)],
    ["asked for", all([cpus === null ? null : `${cpus} CPU${cpus === 1 ? "" : "s"}`, memory])],
    ["partition", all([partition, qos, account])],
    ["time limit", limitText(status, now)],
    ["batch script", exit_code === null ? null : all([`exit code ${exit_code}`, signaled])],
    ["last news", agoText(observed_at, now)],
  ];
}

/** When what an attempt ran began there, and ended; null for what is not so. */
export interface RanThere {
  readonly started_at: string | null;
  readonly ended_at: string | null;
}

const NOWHERE: RanThere = { started_at: null, ended_at: null };

/** Whether the job has begun, or ended, since the scheduler was asked last, so that its word is of the past. One that was left to go on has not ended. */
export function overtaken({ status, retained, ended_at: over }: JobScheduler, { started_at, ended_at }: RanThere): boolean {
  if (status === null || retained || over !== null) return false;
  const since = status.phase === "pending" ? (started_at ?? ended_at) : ended_at;
  return since !== null && Date.parse(since) >= Date.parse(status.observed_at);
}

/** One line on what an attempt has at a scheduler. */
export function schedulerText(record: JobScheduler, ran: RanThere = NOWHERE): string {
  const { provider, native_id, submission, marker, scheduler_cluster, status, retained } = record;
  switch (submission) {
    case "intended":
      return `${provider}: being submitted`;
    case "unresolved":
      return `${provider}: whether it has the job is not known; it is looked for as ${marker}`;
    case "refused":
      return `${provider}: refused`;
    case "submitted": {
      const place = scheduler_cluster === null ? "" : ` on ${oneLine(scheduler_cluster)}`;
      const phase =
        status === null ? "submitted" : overtaken(record, ran) ? `was ${phaseText(status)} when it was last asked` : phaseText(status);
      return `${provider} ${native_id}${place}: ${phase}${retained ? "; it was left to go on" : ""}`;
    }
  }
}
