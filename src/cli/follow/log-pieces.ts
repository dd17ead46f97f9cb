import type { ClusterClient } from "../../api/client.ts";
import type { LogChunk, LogStream } from "../../domain/log.ts";
import { followLog } from "./log-bytes.ts";
import type { Reconnect } from "./reconnect.ts";

/** A log as pieces of text from an offset until the job has ended. The connection that waits for bytes only says when to look. */
export async function* logPieces(
  cluster: ClusterClient,
  jobId: string,
  stream: LogStream,
  start: number,
  reconnect: Reconnect,
  signal: AbortSignal,
): AsyncGenerator<LogChunk> {
  let offset = start;
  let ended = false;
  async function* there(): AsyncGenerator<LogChunk> {
    while (!ended) {
      const chunk = await reconnect.persist(() => cluster.log(jobId, stream, { offset }));
      if (chunk.next_offset === offset && !chunk.eof) return;
      yield chunk;
      offset = chunk.next_offset;
      ended = chunk.eof;
    }
  }
  for await (const _bytes of followLog(cluster, jobId, stream, start, reconnect, signal)) {
    yield* there();
    if (ended) return;
  }
  yield* there();
}
