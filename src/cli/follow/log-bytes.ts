import type { ClusterClient } from "../../api/client.ts";
import type { LogStream } from "../../domain/log.ts";
import { bodyBytes } from "./body-bytes.ts";
import type { Reconnect } from "./reconnect.ts";

/**
 * The bytes of a log from an offset until the job has ended, each once. Where the connection ends without the job having
 * ended, it goes on behind the last byte that came, or behind those that are lost.
 */
export async function* followLog(
  cluster: ClusterClient,
  jobId: string,
  stream: LogStream,
  from: number,
  reconnect: Reconnect,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let offset = from;
  for (;;) {
    let failure: unknown = null;
    try {
      for await (const bytes of bodyBytes(await cluster.logContent(jobId, stream, { offset, follow: true, signal }))) {
        await reconnect.alive();
        offset += bytes.length;
        yield bytes;
      }
      // A body that ends may mean the job's end, the worker's, or that the next bytes are lost.
      const { eof, missing_bytes, next_offset } = await cluster.log(jobId, stream, { offset, limit: 1 });
      if (missing_bytes > 0) {
        await reconnect.passedOver(stream, offset, next_offset);
        offset = next_offset;
        continue;
      }
      if (eof) return;
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
    await reconnect.wait(failure);
  }
}
