import { isRelayError } from "../../domain/errors.ts";
import type { Event } from "../../domain/event.ts";
import type { Place } from "../clusters.ts";
import type { McpService } from "../service.ts";
import type { TaskDocument } from "./projection.ts";

/** Tasks that one subscription may name. */
export const TASKS_MAX = 256;
/** How long is looked for the tasks of a subscription before it is acknowledged, in milliseconds. */
const LOOK_MS = 3_000;

/** The tasks that a client wants to hear of, with where they are; those that are none are left out. One whose cluster does not answer is kept. */
export async function agreedTasks(
  { tasks, clusters }: McpService,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, Place>> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]);
  const found = await Promise.all(
    ids.map(async (id): Promise<[string, Place] | null> => {
      try {
        await tasks.get(id, bounded);
        return [id, await clusters.ofJob(id, {}, signal)];
      } catch (error) {
        if (isRelayError(error, "job_not_found")) return null;
        const place = await clusters.ofJob(id, {}, signal).catch(() => null);
        return place === null ? null : [id, place];
      }
    }),
  );
  return new Map(found.filter((one) => one !== null));
}

const TELLING = /^(?:job|task|progress)\./;

/**
 * Call `tell` with each task as it is, and again whenever its status is another. Returns how to stop.
 */
export function watchTasks(service: McpService, agreed: ReadonlyMap<string, Place>, tell: (task: TaskDocument) => void): () => void {
  const over = new AbortController();
  const stops = [...agreed].map(([id, place]) => {
    let told = "";
    let turn = Promise.resolve();
    const look = (): void => {
      turn = turn.then(async () => {
        if (over.signal.aborted) return;
        const task = await service.tasks.get(id, over.signal).catch(() => null);
        if (task === null || over.signal.aborted) return;
        const shown = JSON.stringify([task.status, Object.keys(task.inputRequests ?? {})]);
        if (shown === told) return;
        told = shown;
        tell(task);
      });
    };
    const { stop, begun } = service.watch.on(place, id, (event: Event) => {
      if (TELLING.test(event.event_type)) look();
    });
    look();
    // What happens between these two looks is told of by nobody else.
    void begun.then(look);
    return stop;
  });
  return () => {
    over.abort();
    for (const stop of stops) stop();
  };
}
