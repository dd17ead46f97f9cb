import * as v from "valibot";
import { ProcessIdentity } from "./attempt.ts";
import { JobKind, type Lane } from "./job.ts";
import { LIMITS } from "./limits.ts";
import { Count, Id, looseText, recordOf, Timestamp, text } from "./primitives.ts";

const slots = {
  concurrency: v.pipe(Count, v.minValue(2), v.maxValue(10_000)),
  control_query_concurrency: v.pipe(Count, v.minValue(1)),
  /** Upper bound per kind; a kind that is not named has none of its own. */
  kind_concurrency: recordOf(JobKind, v.pipe(Count, v.minValue(1))),
};

const leavesSlots = <T extends { concurrency: number; control_query_concurrency: number }>() =>
  v.check<T, string>((c) => c.control_query_concurrency < c.concurrency, "control_query_concurrency must be below concurrency");

/** How much a worker runs at a time on its own host. `control` slots are taken out of `concurrency`. */
export const Slots = v.pipe(v.strictObject(slots), leavesSlots());
export type Slots = v.InferOutput<typeof Slots>;

/** How much a worker has under way at a time. */
export const Capacity = v.pipe(
  v.strictObject({
    ...slots,
    /** Jobs in allocations of a scheduler; they count neither into `concurrency` nor into the bound of their kind. */
    scheduler_jobs: v.optional(Count, LIMITS.schedulerJobs),
  }),
  leavesSlots(),
);
export type Capacity = v.InferOutput<typeof Capacity>;

/** How many attempts a lane may have under way. */
export function slotsOf({ concurrency, control_query_concurrency, scheduler_jobs }: Capacity, lane: Lane): number {
  if (lane === "scheduler") return scheduler_jobs;
  return lane === "control" ? control_query_concurrency : concurrency - control_query_concurrency;
}

/**
 * How many jobs of a kind may be under way at a time on the worker's host. An agent may wait for a job of its own, so that one slot is never an agent's
 * (docs/agents.md).
 */
export function kindSlotsOf(capacity: Capacity, kind: JobKind): number {
  const bound = capacity.kind_concurrency[kind] ?? Number.MAX_SAFE_INTEGER;
  return kind === "remote_agent" ? Math.min(bound, slotsOf(capacity, "workload") - 1) : bound;
}

/** A worker process. One per generation: every start of a worker makes a new one. */
export const Endpoint = v.strictObject({
  endpoint_id: Id,
  role: v.picklist(["worker", "desktop"]),
  cluster: Id,
  /** Set at start. */
  process: ProcessIdentity,
  version: text(128),
  capacity: Capacity,
  registered_at: Timestamp,
  /** Moved on by every heartbeat. */
  last_seen_at: Timestamp,
  /** Set when it stopped by itself; null while it runs or when it was killed. */
  stopped_at: v.nullable(Timestamp),
  /** The last failure that a lane survived; null when there was none. */
  lane_last_error: v.nullable(looseText(2_000)),
});
export type Endpoint = v.InferOutput<typeof Endpoint>;
