import { isRelayError } from "../../../domain/errors.ts";
import { LOG_STREAMS, type LogStream, type StreamCapture } from "../../../domain/log.ts";
import type { SchedulerJob } from "../../../domain/scheduler.ts";
import { readTruncation } from "../../../execution/attempt-dir.ts";
import { timestamp } from "../../../lib/waiting/clock.ts";
import type { HostedAttempt } from "../attempt-host.ts";

/**
 * End an attempt as canceled and leave its job of the scheduler to go on; nothing in its directory is touched.
 *
 * @returns false where somebody has asked for the scheduler's job to be canceled, too
 */
export async function leave({ context, fence, directory }: HostedAttempt, { provider, native_id }: SchedulerJob): Promise<boolean> {
  const segments = (await context.store.segments(fence.job_id)).filter(({ attempt }) => attempt === fence.attempt);
  const captureOf = (stream: LogStream): StreamCapture => {
    const kept = segments.find((segment) => segment.stream === stream)?.length ?? 0;
    const cut = readTruncation(directory, stream)?.capture;
    const dropped = cut?.dropped ?? 0;
    return { observed: kept + dropped, kept, dropped, truncated: cut?.truncated ?? null, complete: false };
  };
  try {
    await context.store.retainSchedulerJob(fence, {
      outcome: {
        reason: "canceled",
        exit_code: null,
        signal: null,
        message: `canceled; job ${native_id} of ${provider} was left alone and goes on, and what it writes from now on is not taken in`,
        residual: [],
      },
      ended_at: timestamp(context.clock),
      captures: Object.fromEntries(LOG_STREAMS.map((stream) => [stream, captureOf(stream)])) as Record<LogStream, StreamCapture>,
      artifacts: [],
      events: [],
    });
    return true;
  } catch (error) {
    if (!isRelayError(error, "state_conflict")) throw error;
    return false;
  }
}
