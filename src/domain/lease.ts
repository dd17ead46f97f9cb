import * as v from "valibot";
import { JobKind, Lane } from "./job.ts";
import { Id, Sequence, Timestamp } from "./primitives.ts";

/** An endpoint's right to work on a job's current attempt. Gone when the attempt ends. */
export const Lease = v.strictObject({
  lease_id: Id,
  job_id: Id,
  endpoint_id: Id,
  attempt: Sequence,
  kind: JobKind,
  lane: Lane,
  acquired_at: Timestamp,
  /** Moved on by every heartbeat. */
  expires_at: Timestamp,
});
export type Lease = v.InferOutput<typeof Lease>;
