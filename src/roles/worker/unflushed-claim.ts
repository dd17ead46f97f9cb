import type { Attempt } from "../../domain/attempt.ts";
import type { Endpoint } from "../../domain/endpoint.ts";
import type { Job } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { attemptDirectory, readStart } from "../../execution/attempt-dir.ts";
import { bootId } from "../../lib/system/process-identity.ts";
import type { WorkerContext } from "./context.ts";
import { keepsServer } from "./engines/mcp/attempt.ts";
import { placeFor } from "./job-place.ts";
import { settleUnstarted } from "./settlement.ts";

const WHY =
  "the machine went down after the call was given to its server's shim, whose claim need not outlive that: nobody knows whether the call was made";

/**
 * End an attempt on a kept server that was claimed before this machine was started, and of which no claim of a shim is left: that is not flushed, so that
 * it says nothing that there is none (docs/spool.md, Kept servers). Before the attempt is taken over: from then on, it is one of this start.
 *
 * @returns false for every other attempt
 */
export async function settledUnflushed(context: WorkerContext, job: Job, attempt: Attempt): Promise<boolean> {
  if (attempt.state !== "claimed" || job.kind !== "mcp_call" || !keepsServer(job.spec)) return false;
  if (readStart(attemptDirectory(placeFor(context, job), attempt.attempt)) !== null) return false;
  const holder = await endpointOf(context, job.leased_by);
  // A system that does not tell its starts apart proves nothing.
  if (bootId() !== "" && holder?.process.boot_id === bootId()) return false;
  const isCanceled = job.cancellation_request !== null;
  const fence = { job_id: job.job_id, attempt: attempt.attempt };
  await settleUnstarted(context, fence, isCanceled ? "canceled" : "outcome_unknown", isCanceled ? `canceled; ${WHY}` : WHY);
  return true;
}

/** Null where it is not on record. */
async function endpointOf({ store }: WorkerContext, id: string | null): Promise<Endpoint | null> {
  for (let cursor = 1; id !== null; ) {
    const { items, next_cursor } = await store.endpoints({ cursor, limit: LIMITS.pageMax });
    const found = items.find(({ endpoint_id }) => endpoint_id === id);
    if (found !== undefined || items.length === 0) return found ?? null;
    cursor = next_cursor;
  }
  return null;
}
