import * as v from "valibot";
import { ProcessIdentity } from "./attempt.ts";
import { JobKind } from "./job.ts";
import { Count, Id, looseText, recordOf, Timestamp, text } from "./primitives.ts";

/** How much a worker runs at a time. `control` slots are taken out of `concurrency`. */
export const Capacity = v.pipe(
  v.strictObject({
    concurrency: v.pipe(Count, v.minValue(2), v.maxValue(10_000)),
    control_query_concurrency: v.pipe(Count, v.minValue(1)),
    /** Upper bound per kind; a kind that is not named has none of its own. */
    kind_concurrency: recordOf(JobKind, v.pipe(Count, v.minValue(1))),
  }),
  v.check((c) => c.control_query_concurrency < c.concurrency, "control_query_concurrency must be below concurrency"),
);
export type Capacity = v.InferOutput<typeof Capacity>;

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
