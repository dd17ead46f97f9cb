import type { Logs } from "../../api/worker-services.ts";
import type { LogStream } from "../../domain/log.ts";
import { isTerminal } from "../../domain/transitions.ts";
import { followLog } from "../../execution/follow-log.ts";
import { checkPresent, logSize, readLogBytes, readLogText, type SpoolLog, tailLogText } from "../../execution/spool-log.ts";
import type { QueueStore } from "../../queue/store.ts";
import { jobPlace, type Spools } from "./job-place.ts";

const PIECE_BYTES = 256 * 1024;

/** The logs of a worker's jobs: segments from the queue, bytes from the spool. */
export function spoolLogs(store: QueueStore, spools: Spools): Logs {
  const segmentsOf = async (jobId: string, stream: LogStream) => (await store.segments(jobId)).filter((s) => s.stream === stream);
  const open = async (jobId: string, stream: LogStream): Promise<SpoolLog> => ({
    directory: jobPlace(spools, jobId),
    stream,
    segments: await segmentsOf(jobId, stream),
  });
  const ended = async (jobId: string) => isTerminal((await store.job(jobId)).state);

  return {
    async state(jobId, stream) {
      // Asked in this order: once the job has ended, its segments are final.
      const complete = await ended(jobId);
      const log = await open(jobId, stream);
      return { size_bytes: await logSize(log), complete, capture: log.segments.findLast((s) => s.capture !== null)?.capture ?? null };
    },

    async chunk(jobId, stream, at, limit) {
      const complete = await ended(jobId);
      const log = await open(jobId, stream);
      const piece = "tail" in at ? await tailLogText(log, Math.min(at.tail, limit)) : await readLogText(log, at.offset, limit);
      return { job_id: jobId, stream, ...piece, eof: complete && piece.next_offset >= (await logSize(log)) };
    },

    check: async (jobId, stream, { offset, end }) => checkPresent(await open(jobId, stream), offset, end),

    async *bytes(jobId, stream, { offset, end }, signal) {
      if (end === null) {
        yield* followLog(
          { directory: jobPlace(spools, jobId), stream },
          {
            offset,
            segments: () => segmentsOf(jobId, stream),
            ended: () => ended(jobId),
            subscribe: (wake) => store.subscribe(`job:${jobId}`, wake),
            signal,
          },
        );
        return;
      }
      const log = await open(jobId, stream);
      for (let at = offset; at < end && !signal.aborted; ) {
        const bytes = await readLogBytes(log, at, Math.min(PIECE_BYTES, end - at));
        if (bytes.length === 0) return;
        // Who takes it may give its memory back, and then it has no length.
        at += bytes.length;
        yield bytes;
      }
    },
  };
}
