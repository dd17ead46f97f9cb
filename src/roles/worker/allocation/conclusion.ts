import type { CancellationRequest } from "../../../domain/job.ts";
import { hasEnded, type SchedulerJob, type SchedulerStatus } from "../../../domain/scheduler.ts";
import type { ExitRecord } from "../../../execution/spool-records.ts";
import { type Clock, timestamp } from "../../../lib/waiting/clock.ts";
import { logsLack } from "../spool-damage.ts";
import type { AllocationTimes } from "./times.ts";
import { besidesOf, endedFor, explained, mayBeTheirs, queuedAgain } from "./words.ts";

/** When a shim's record was seen first. */
export class Coming {
  readonly #at: number;
  readonly #seen: string;

  constructor(private readonly clock: Clock) {
    this.#at = clock.monotonic();
    this.#seen = timestamp(clock);
  }

  /** Milliseconds. */
  get since(): number {
    return this.clock.monotonic() - this.#at;
  }

  isBefore({ observed_at }: Pick<SchedulerStatus, "observed_at">): boolean {
    return this.#seen < observed_at;
  }
}

/** What is known where a shim's record has come. */
export interface Evidence {
  /** The attempt's. */
  readonly directory: string;
  readonly came: Pick<Coming, "since" | "isBefore">;
  readonly times: Pick<AllocationTimes, "lag" | "why">;
  readonly record: Pick<SchedulerJob, "provider"> | null;
  readonly status: SchedulerStatus | null;
  readonly request: Pick<CancellationRequest, "cancel_scheduler"> | null;
  /** The time limit that was asked for. */
  readonly limitSeconds: number | null;
}

/** What is still to come; null where that need not be said. */
export interface Awaited {
  readonly obstacle: string | null;
}

/** A shim's record, once its output is all there and the scheduler has had its say where that matters; or what is waited for. */
export function concluded(exit: ExitRecord, evidence: Evidence): ExitRecord | Awaited {
  const { directory, came, times, record, status, request, limitSeconds } = evidence;
  const { since } = came;
  // A file server may show the record sooner than what was written before it.
  if (since < times.lag && logsLack(directory, exit.streams))
    return { obstacle: "its shim has ended it; some of its output is not to be seen here yet" };
  if (request?.cancel_scheduler === true) {
    const ended = asCanceled(exit, status, limitSeconds);
    if (ended.outcome.reason === "canceled") {
      if (status !== null && (hasEnded(status.phase) || status.active_record_found === false)) return ended;
      return {
        obstacle: `its shim has ended it; whether ${record?.provider ?? "the scheduler"} has ended the allocation is not known yet`,
      };
    }
  }
  if (!mayBeTheirs(exit)) return exit;
  if (status !== null && hasEnded(status.phase)) return { ...exit, outcome: explained(exit, status, limitSeconds, besidesOf(directory)) };
  if (record !== null && since < times.why) return { obstacle: null };
  return status?.phase === "pending" && came.isBefore(status) ? { ...exit, outcome: queuedAgain(exit, status) } : exit;
}

/** A shim that got our TERM, and did not see cancel.json by then, takes it for the scheduler's. */
function asCanceled(exit: ExitRecord, status: SchedulerStatus | null, limitSeconds: number | null): ExitRecord {
  const { outcome, asked_to_end } = exit;
  const isOurs = asked_to_end === true && outcome.reason !== "completed" && endedFor(status, limitSeconds) !== "timeout";
  return isOurs ? { ...exit, outcome: { ...outcome, reason: "canceled", message: "canceled" } } : exit;
}
