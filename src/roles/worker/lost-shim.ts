import type { Outcome } from "../../domain/job.ts";
import { LOG_STREAMS, type LogStream } from "../../domain/log.ts";
import { hasExit, logSizes, readProcess, readTruncation, writeExit } from "../../execution/attempt-dir.ts";
import { attemptExit } from "../../execution/exit-record.ts";
import { attemptPlace } from "../../execution/own-place.ts";
import { endJob, findJob, type JobProcesses } from "../../execution/processes.ts";
import { attemptMark, type ExitRecord, type ExitStream, RECORD_VERSION } from "../../execution/spool-records.ts";
import { bootId, type Identity, type ProcessStat } from "../../lib/system/process-identity.ts";
import { timestamp } from "../../lib/waiting/clock.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import { isPassing } from "./patience.ts";

/** As many as an outcome may name. */
const RESIDUAL_MAX = 1_000;

/** A claim that names nobody. */
export const NOBODY: ShimClaim = { shim: null, cgroup: null, process: null, startedAt: null, understood: false };

/** Who runs an attempt, as far as it is known. */
export interface ShimClaim {
  /** Null where nothing names it: then it can be neither asked nor waited for. */
  readonly shim: Identity | null;
  readonly cgroup: string | null;
  /** What the queue has on record of the job's first process; null before that. */
  readonly process: Identity | null;
  readonly startedAt: string | null;
  /** Whether its start.json was read by this worker, which then understands the attempt's records. */
  readonly understood: boolean;
}

/** An attempt whose shim will not tell how it ended. */
export interface Lost {
  readonly context: WorkerContext;
  readonly fence: Fence;
  readonly directory: string;
  readonly claim: ShimClaim;
  /** Bytes that the shim kept of one stream at most. */
  readonly keptMax: number;
}

export interface LostAttempt extends Lost {
  /** Somebody asked for the end, so that it is known and not `outcome_unknown`. */
  readonly canceling: boolean;
  /** What ran below the shim when it was last seen. */
  readonly descendants: readonly ProcessStat[];
  readonly signal: AbortSignal;
}

/**
 * End an attempt whose shim is gone without having recorded an end: end what is left of the job, then write exit.json in the shim's
 * place. What the shim had not written of the output is lost and cannot be counted, so the streams are marked incomplete.
 *
 * @throws the signal's reason when that is aborted; the next worker does it again
 */
export async function endLostAttempt(lost: LostAttempt): Promise<ExitRecord> {
  const { context, fence, directory, claim, canceling, signal } = lost;
  const why = reasonUnknown(directory, claim);
  const known = readProcess(directory);
  const job: JobProcesses = {
    mark: attemptMark(fence.job_id, fence.attempt),
    process: claim.process ?? known?.process ?? null,
    cgroup: claim.cgroup,
    descendants: lost.descendants,
  };
  const before = findJob(job).owned.length;
  const left = await endJob(job, context.limits.cancelGraceSeconds * 1_000, context.clock, signal);
  const rest = restOf(before, left.length, claim.cgroup !== null || isOfEarlierBoot(claim));
  const outcome: Outcome = {
    reason: canceling ? "canceled" : "outcome_unknown",
    exit_code: null,
    signal: null,
    message: canceling ? `canceled; ${why}, and ${rest}` : `${why}, so nobody knows how the command ended; ${rest}`,
    residual: left.slice(0, RESIDUAL_MAX),
  };
  return recordLost(lost, outcome);
}

/** Write exit.json in a shim's place. */
export async function recordLost(lost: Lost, outcome: Outcome): Promise<ExitRecord> {
  const { context, directory, claim } = lost;
  return written(lost, {
    record_version: RECORD_VERSION,
    outcome,
    started_at: claim.startedAt ?? readProcess(directory)?.started_at ?? null,
    ended_at: timestamp(context.clock),
    streams: await streamsOf(lost),
    usage: null,
    leftover: 0,
  });
}

function reasonUnknown(directory: string, claim: ShimClaim): string {
  const place = attemptPlace(directory);
  if (place === "absent") return "the attempt's directory is missing from the spool";
  if (place === "other") return "something else is in the place of the attempt's directory";
  if (hasExit(directory)) return "exit.json cannot be read, or cannot be its shim's";
  if (claim.shim === null) return "start.json does not say which shim ran the command";
  return "the shim ended without a record, as one does that is killed";
}

/** @param all whether everything of the job was sure to be found */
function restOf(before: number, left: number, all: boolean): string {
  if (left > 0) return `${left} ${left === 1 ? "process" : "processes"} could not be ended, or not be proven to be the job's`;
  if (all) return before === 0 ? "nothing of it was left running" : "what was left of it was ended";
  const found = before === 0 ? "nothing of it was found running" : "what was found of it was ended";
  return `${found} (without a cgroup, a process that left its session and its environment behind may be missed)`;
}

const isOfEarlierBoot = ({ shim, process }: ShimClaim): boolean => {
  const known = process ?? shim;
  return known !== null && known.boot_id !== bootId();
};

/** What was recorded counts as kept, whatever the files hold by now; of what was not, no more than the shim may have written. */
async function streamsOf({ context, fence, directory, keptMax }: Lost): Promise<ExitRecord["streams"]> {
  const sizes = logSizes(directory);
  const segments = (await context.store.segments(fence.job_id)).filter(({ attempt }) => attempt === fence.attempt);
  const of = (stream: LogStream): ExitStream => {
    const kept = Math.max(Math.min(sizes[stream], keptMax), segments.find((segment) => segment.stream === stream)?.length ?? 0);
    const cut = readTruncation(directory, stream)?.capture;
    const dropped = cut?.dropped ?? 0;
    return { observed: kept + dropped, kept, dropped, truncated: cut?.truncated ?? null, complete: false, sha256: null };
  };
  return Object.fromEntries(LOG_STREAMS.map((stream) => [stream, of(stream)])) as Record<LogStream, ExitStream>;
}

/** The record that holds. Without a place to write it to, it goes into the queue all the same: the next worker would come to the same. */
function written({ directory, claim, keptMax }: Lost, record: ExitRecord): ExitRecord {
  try {
    if (writeExit(directory, record)) return record;
  } catch (error) {
    if (isPassing(error)) throw error;
    return record;
  }
  const found = attemptExit(directory, { ...claim, keptMax });
  return found === null || found === "torn" ? record : found;
}
