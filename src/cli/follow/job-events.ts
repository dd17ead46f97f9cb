import type { ClusterClient } from "../../api/client.ts";
import type { Event } from "../../domain/event.ts";
import type { Reconnect } from "./reconnect.ts";

/**
 * Events of a job from a cursor on until the last, each once, whatever happens to worker, daemon and connection in between.
 */
export async function* jobEvents(
  cluster: ClusterClient,
  jobId: string,
  cursor: number,
  reconnect: Reconnect,
  signal: AbortSignal,
): AsyncGenerator<Event> {
  let next = cursor;
  for (;;) {
    let failure: unknown = null;
    const stream = cluster.eventStream(jobId, { cursor: next, signal });
    try {
      for (;;) {
        const result = await stream.next();
        if (result.done) {
          if (result.value === "terminal") return;
          break;
        }
        await reconnect.alive();
        // A server that repeats itself is not repeated.
        if (result.value.seq < next) continue;
        next = result.value.seq + 1;
        yield result.value;
      }
    } catch (error) {
      failure = error;
    }
    await reconnect.wait(failure);
  }
}
