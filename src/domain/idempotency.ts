import * as v from "valibot";
import { IdempotencyKey } from "./job.ts";
import { Id, Sha256 } from "./primitives.ts";

/** The binding of a key to the submission that first used it. Lives as long as the job or its tombstone. */
export const Idempotency = v.strictObject({
  idempotency_key: IdempotencyKey,
  job_id: Id,
  job_digest: Sha256,
  /** `retired` when only the tombstone is left. */
  state: v.picklist(["committed", "retired"]),
});
export type Idempotency = v.InferOutput<typeof Idempotency>;
