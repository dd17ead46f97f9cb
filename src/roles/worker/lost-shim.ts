import type { Outcome } from "../../domain/job.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { logSizes, readExit, readProcess, readTruncation, writeExit } from "../../execution/attempt-dir.ts";
import { endJob } from "../../execution/processes.ts";
import { attemptMark, type ExitRecord, type ExitStream, RECORD_VERSION, type StartRecord } from "../../execution/spool-records.ts";
import { timestamp } from "../../lib/clock.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";

/** As many as an outcome may name. */
const RESIDUAL_MAX = 1_000;

/**
 * End an attempt whose shim died without recording an end: end the job's processes, then write exit.json in the shim's
 * place. What the shim had not written of the output is lost and cannot be counted, so the streams are marked incomplete.
 *
 * @param canceling somebody asked for the end, so that it is known and not `outcome_unknown`
 * @throws the signal's reason when that is aborted; the next worker does it again
 */
export async function endLostAttempt(
  context: WorkerContext,
  fence: Fence,
  directory: string,
  start: Extract<StartRecord, { claimed_by: "shim" }> | "torn" | null,
  canceling: boolean,
  signal: AbortSignal,
): Promise<ExitRecord> {
  const processRecord = readProcess(directory);
  const left = await endJob(
    {
      mark: attemptMark(fence.job_id, fence.attempt),
      process: processRecord?.process ?? null,
      cgroup: start === null || start === "torn" ? null : start.cgroup,
    },
    context.limits.cancelGraceSeconds * 1_000,
    context.clock,
    signal,
  );
  const residual = left.slice(0, RESIDUAL_MAX);
  const sizes = logSizes(directory);
  const outcome: Outcome = canceling
    ? { reason: "canceled", exit_code: null, signal: null, message: "canceled; the shim was killed meanwhile", residual }
    : {
        reason: "outcome_unknown",
        exit_code: null,
        signal: null,
        message: "the shim was killed, so nobody saw how the command ended; its processes were ended",
        residual,
      };
  const record: ExitRecord = {
    record_version: RECORD_VERSION,
    outcome,
    started_at: processRecord?.started_at ?? null,
    ended_at: timestamp(context.clock),
    streams: Object.fromEntries(
      LOG_STREAMS.map((stream): [string, ExitStream] => {
        const dropped = readTruncation(directory, stream)?.capture;
        return [
          stream,
          {
            observed: sizes[stream] + (dropped?.dropped ?? 0),
            kept: sizes[stream],
            dropped: dropped?.dropped ?? 0,
            truncated: dropped?.truncated ?? null,
            complete: false,
            sha256: null,
          },
        ];
      }),
    ) as ExitRecord["streams"],
    usage: null,
    leftover: 0,
  };
  if (writeExit(directory, record)) return record;
  const found = readExit(directory);
  return found === null || found === "torn" ? record : found;
}
