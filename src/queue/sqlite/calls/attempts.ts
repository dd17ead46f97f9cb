import type { QueueStore } from "../../store.ts";
import { attempt, attempts } from "../attempt-rows.ts";
import { startAttempt, voidAttempt } from "../attempt-start.ts";
import { cancelRequests } from "../cancel.ts";
import { claim, nextDelay } from "../claim.ts";
import type { HeldAttempts } from "../held-attempts.ts";
import { emitOffsets, ingest } from "../ingest.ts";
import { takeOverLease } from "../leases.ts";
import { openAttempts } from "../open-attempts.ts";
import { segments } from "../segments.ts";
import { settle } from "../settle.ts";
import type { Calls } from "./access.ts";

type AttemptCalls = Pick<
  QueueStore,
  | "claim"
  | "nextDelay"
  | "startAttempt"
  | "voidAttempt"
  | "settle"
  | "ingest"
  | "emitOffsets"
  | "segments"
  | "attempt"
  | "attempts"
  | "openAttempts"
  | "takeOverLease"
  | "cancelRequests"
>;

/** What the store does with attempts. Whoever claims one or takes one over holds it until it is over. */
export function attemptCalls({ read, write }: Calls, held: HeldAttempts, leaseMs: number): AttemptCalls {
  return {
    claim: (endpointId, capacity) =>
      held.from((hold) =>
        write((w) => {
          const claimed = claim(w, endpointId, capacity, leaseMs);
          if (claimed !== null) hold({ job_id: claimed.job.job_id, attempt: claimed.attempt.attempt });
          return claimed;
        }),
      ),
    takeOverLease: (fence, endpointId) =>
      held.from((hold) =>
        write((w) => {
          const lease = takeOverLease(w, fence, endpointId, leaseMs);
          hold(fence);
          return lease;
        }),
      ),
    nextDelay: () => read(nextDelay),
    startAttempt: (fence, started) => write((w) => startAttempt(w, fence, started)),
    voidAttempt: (fence, reason) =>
      held.until(
        fence,
        write((w) => voidAttempt(w, fence, reason)),
      ),
    settle: (fence, settlement) =>
      held.until(
        fence,
        write((w) => settle(w, fence, settlement)),
      ),
    ingest: (fence, batch) => write((w) => ingest(w, fence, batch)),
    emitOffsets: (fence) => read((r) => emitOffsets(r, fence)),
    segments: (jobId) => read((r) => segments(r, jobId)),
    attempt: (jobId, number) => read((r) => attempt(r, jobId, number)),
    attempts: (jobId, page) => read((r) => attempts(r, jobId, page)),
    openAttempts: () => write(openAttempts),
    cancelRequests: () => read(cancelRequests),
  };
}
