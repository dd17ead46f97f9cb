import * as v from "valibot";
import { errorRule, RelayError } from "../domain/errors.ts";
import type { LogStream } from "../domain/log.ts";
import { ByteCount } from "../domain/primitives.ts";
import { isTerminal } from "../domain/transitions.ts";
import { type JobWaitResult, Observation } from "../domain/views.ts";
import { Backoff } from "../lib/waiting/backoff.ts";
import { sleep } from "../lib/waiting/sleep.ts";
import { asked } from "./asked.ts";
import type { Place } from "./clusters.ts";
import { callResult, MCP_RESULT } from "./federation/call-result.ts";
import { followEvents } from "./follow.ts";
import { logPiece } from "./log-piece.ts";
import type { ToolCall } from "./tool.ts";
import { jobView, LOG_BYTES, StatusView as STATUS, type StatusView, statusView } from "./views.ts";

/** One request to a worker waits for so long at most, in seconds: a way that breaks is noticed. */
const PIECE_SECONDS = 60;

export const LogView = v.object({
  text: v.string(),
  offset: ByteCount,
  next_offset: ByteCount,
  /** Whether nothing follows. */
  eof: v.boolean(),
});
export type LogView = v.InferOutput<typeof LogView>;

const LogTails = v.object({ stdout: LogView, stderr: LogView });

/** What to call to go on. */
export const Retry = v.object({ tool: v.string(), arguments: v.record(v.string(), v.unknown()) });

/** What a wait adds to how a job stands. */
export const OBSERVED = {
  observation: Observation,
  mcp_result: v.optional(MCP_RESULT),
  logs_tail: v.optional(v.pipe(LogTails, v.description("of stdout and of stderr: text, offset, next_offset, eof"))),
  retry: v.optional(v.pipe(Retry, v.description("the call that goes on waiting"))),
};
export const WaitedView = v.object({ ...STATUS, ...OBSERVED });
export type WaitedView = v.InferOutput<typeof WaitedView>;

interface WaitOptions {
  readonly timeout_seconds: number;
  readonly include_logs?: boolean;
  readonly log_limit?: number;
}

/** Whether a later try may find the way open. */
const isOutage = (error: unknown): boolean =>
  error instanceof RelayError && errorRule(error.code).retryable && errorRule(error.code).http >= 500;

/**
 * Wait until a job has ended, or the time is over. The first question has to come through; what breaks later is tried again for as long as there is time.
 *
 * @throws RelayError as any operation, of the first question
 */
export async function waited(place: Place, jobId: string, options: WaitOptions, call: ToolCall): Promise<WaitedView> {
  const deadline = call.now() + options.timeout_seconds * 1_000;
  const first = await status(place, jobId, call.signal);
  const seen = first.terminal ? first : await afterwards(place, first, deadline, call);
  return { ...seen, ...(await observed(place, seen, options, call)) };
}

/** What a wait adds to what it has seen. */
export async function observed(
  place: Place,
  { job_id, kind, state, cluster, route_revision }: Pick<StatusView, "job_id" | "kind" | "state" | "cluster" | "route_revision">,
  { timeout_seconds, include_logs = false, log_limit = LOG_BYTES / 2 }: WaitOptions,
  call: ToolCall,
): Promise<Pick<WaitedView, keyof typeof OBSERVED>> {
  const terminal = isTerminal(state);
  const outcome = terminal ? "terminal" : "observation_unknown";
  const retry = { tool: "relay_wait", arguments: { job_id, cluster, route_revision, timeout_seconds } };
  return {
    observation: { outcome, timeout_seconds, scheduler_action: "none", relay_action: "none" },
    ...(terminal && kind === "mcp_call" ? { mcp_result: await callResult(place, job_id, call.signal) } : {}),
    ...(include_logs ? { logs_tail: await tails(place, job_id, log_limit, call.signal) } : {}),
    ...(terminal ? {} : { retry }),
  };
}

export const status = async (place: Place, jobId: string, signal: AbortSignal): Promise<StatusView> =>
  statusView(place, await asked(`the worker of ${place.entry.name}`, signal, (bounded) => place.client.status(jobId, bounded)));

/** How it stands when it has ended, or when the time is over; as it stood before where that cannot be had any more. */
async function afterwards(place: Place, before: StatusView, deadline: number, call: ToolCall): Promise<StatusView> {
  const job = await untilEnded(place, before.job_id, deadline, call);
  if (job === null) return before;
  try {
    return await status(place, before.job_id, call.signal);
  } catch (error) {
    if (!isOutage(error)) throw error;
    return { ...before, ...jobView(place, job) };
  }
}

/** Wait until a job has ended, or the time is over, and tell the client of its events meanwhile. @returns the job as it was seen last; null where it was not */
export async function untilEnded(place: Place, jobId: string, deadline: number, call: ToolCall): Promise<JobWaitResult | null> {
  const over = new AbortController();
  const heard = call.wantsProgress ? tell(place, jobId, call, AbortSignal.any([call.signal, over.signal])) : null;
  try {
    return await lastSeen(place, jobId, deadline, call);
  } finally {
    over.abort();
    await heard;
  }
}

async function lastSeen(place: Place, jobId: string, deadline: number, call: ToolCall): Promise<JobWaitResult | null> {
  const backoff = new Backoff(200, 3_000);
  let seen: JobWaitResult | null = null;
  for (;;) {
    const left = (deadline - call.now()) / 1_000;
    if (left <= 0) return seen;
    try {
      const { answer, seconds } = await waitedPiece(place, jobId, left, call.signal);
      seen = answer;
      if (isTerminal(seen.state)) return seen;
      backoff.reset();
      // A worker that is about to stop answers early.
      if ((deadline - call.now()) / 1_000 > left - seconds + 1) await sleep(backoff.next(), call.signal);
    } catch (error) {
      if (!isOutage(error)) throw error;
      await sleep(Math.min(backoff.next(), Math.max(0, deadline - call.now())), call.signal);
    }
  }
}

/** Wait for the end of a job with one request; where too many wait already, look after a while. @param left seconds that there are */
async function waitedPiece(
  place: Place,
  jobId: string,
  left: number,
  signal: AbortSignal,
): Promise<{ answer: JobWaitResult; seconds: number }> {
  const release = place.held.take();
  const seconds = release === null ? 0 : Math.min(left, PIECE_SECONDS);
  const wait = (bounded: AbortSignal) => place.client.wait(jobId, { timeout_seconds: seconds, signal: bounded });
  try {
    if (release === null) await sleep(Math.min(left * 1_000, place.held.lookMs), signal);
    return { answer: await asked(`the worker of ${place.entry.name}`, signal, wait, (seconds + 10) * 1_000), seconds };
  } finally {
    release?.();
  }
}

/** Tell the client of every event from now on. */
async function tell(place: Place, jobId: string, call: ToolCall, signal: AbortSignal): Promise<void> {
  try {
    const { total } = await place.client.events(jobId, { limit: 1, signal });
    for await (const event of followEvents(place, jobId, Math.max(1, total), signal))
      call.progress(event.seq, `${event.event_type}: ${event.message}`);
  } catch {
    // Whoever waits is told by the answer.
  }
}

/** The last bytes of both streams. */
export async function tails(place: Place, jobId: string, limit: number, signal: AbortSignal): Promise<v.InferOutput<typeof LogTails>> {
  const [stdout, stderr] = await Promise.all([tail(place, jobId, "stdout", limit, signal), tail(place, jobId, "stderr", limit, signal)]);
  return { stdout, stderr };
}

async function tail(place: Place, jobId: string, stream: LogStream, limit: number, signal: AbortSignal): Promise<LogView> {
  const { text, offset, next_offset, eof } = await logPiece(place, { jobId, stream }, limit, signal);
  return { text, offset, next_offset, eof };
}
