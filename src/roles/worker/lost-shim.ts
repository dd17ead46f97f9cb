import fs from "node:fs";
import type { Outcome } from "../../domain/job.ts";
import { LOG_STREAMS, type LogStream } from "../../domain/log.ts";
import { logSizes, readExit, readProcess, readTruncation, writeExit } from "../../execution/attempt-dir.ts";
import { endJob, findJob, type JobProcesses } from "../../execution/processes.ts";
import { attemptMark, type ExitRecord, type ExitStream, RECORD_VERSION } from "../../execution/spool-records.ts";
import { timestamp } from "../../lib/clock.ts";
import type { Identity } from "../../lib/process-identity.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import { isPassing } from "./patience.ts";

/** As many as an outcome may name. */
const RESIDUAL_MAX = 1_000;

/** Who runs an attempt, as far as it is known. */
export interface ShimClaim {
  /** Null where nothing names it: then it can be neither asked nor waited for. */
  readonly shim: Identity | null;
  readonly cgroup: string | null;
  /** What the queue has on record of the job's first process; null before that. */
  readonly process: Identity | null;
  readonly startedAt: string | null;
}

export interface LostAttempt {
  readonly context: WorkerContext;
  readonly fence: Fence;
  readonly directory: string;
  readonly claim: ShimClaim;
  /** Somebody asked for the end, so that it is known and not `outcome_unknown`. */
  readonly canceling: boolean;
  readonly signal: AbortSignal;
}

/**
 * End an attempt whose shim is gone without having recorded an end: end what is left of the job, then write exit.json in the shim's
 * place. What the shim had not written of the output is lost and cannot be counted, so the streams are marked incomplete.
 *
 * @throws the signal's reason when that is aborted; the next worker does it again
 */
export async function endLostAttempt({ context, fence, directory, claim, canceling, signal }: LostAttempt): Promise<ExitRecord> {
  const why = reasonUnknown(directory, claim);
  const known = readProcess(directory);
  const job: JobProcesses = {
    mark: attemptMark(fence.job_id, fence.attempt),
    process: claim.process ?? known?.process ?? null,
    cgroup: claim.cgroup,
  };
  const before = findJob(job).owned.length;
  const left = await endJob(job, context.limits.cancelGraceSeconds * 1_000, context.clock, signal);
  const rest = restOf(before, left.length);
  const outcome: Outcome = {
    reason: canceling ? "canceled" : "outcome_unknown",
    exit_code: null,
    signal: null,
    message: canceling ? `canceled; ${why}, and ${rest}` : `${why}, so nobody knows how the command ended; ${rest}`,
    residual: left.slice(0, RESIDUAL_MAX),
  };
  return written(directory, {
    record_version: RECORD_VERSION,
    outcome,
    started_at: claim.startedAt ?? known?.started_at ?? null,
    ended_at: timestamp(context.clock),
    streams: await streamsOf(context, fence, directory),
    usage: null,
    leftover: 0,
  });
}

function reasonUnknown(directory: string, claim: ShimClaim): string {
  if (!fs.existsSync(directory)) return "the attempt's directory is missing from the spool";
  if (fs.lstatSync(directory).isDirectory() && readExit(directory) === "torn") return "exit.json cannot be read";
  if (claim.shim === null) return "start.json does not say which shim ran the command";
  return "the shim ended without a record, as one does that is killed";
}

function restOf(before: number, left: number): string {
  if (left > 0) return `${left} ${left === 1 ? "process" : "processes"} could not be ended, or not be proven to be the job's`;
  return before === 0 ? "nothing of it was left running" : "what was left of it was ended";
}

/** What was recorded counts as kept, whatever the files hold by now. */
async function streamsOf(context: WorkerContext, fence: Fence, directory: string): Promise<ExitRecord["streams"]> {
  const sizes = logSizes(directory);
  const segments = (await context.store.segments(fence.job_id)).filter(({ attempt }) => attempt === fence.attempt);
  const of = (stream: LogStream): ExitStream => {
    const kept = Math.max(sizes[stream], segments.find((segment) => segment.stream === stream)?.length ?? 0);
    const cut = readTruncation(directory, stream)?.capture;
    const dropped = cut?.dropped ?? 0;
    return { observed: kept + dropped, kept, dropped, truncated: cut?.truncated ?? null, complete: false, sha256: null };
  };
  return Object.fromEntries(LOG_STREAMS.map((stream) => [stream, of(stream)])) as Record<LogStream, ExitStream>;
}

/** The record that holds. Without a place to write it to, it goes into the queue all the same: the next worker would come to the same. */
function written(directory: string, record: ExitRecord): ExitRecord {
  try {
    if (writeExit(directory, record)) return record;
  } catch (error) {
    if (isPassing(error)) throw error;
    return record;
  }
  const found = readExit(directory);
  return found === null || found === "torn" ? record : found;
}
