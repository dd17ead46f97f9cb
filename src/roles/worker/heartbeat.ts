import { LIMITS } from "../../domain/limits.ts";
import { type Service, service } from "../../lib/service.ts";
import type { WorkerContext } from "./context.ts";
import type { Dispatcher } from "./dispatcher.ts";

const INTERVAL_MS = (LIMITS.leaseSeconds * 1_000) / 4;

/**
 * Shows that the worker lives, renews its leases, and lets go of attempts whose lease it lost.
 *
 * @param check throws what is wrong with the place of the queue, for worker status
 */
export function heartbeat(context: WorkerContext, dispatcher: Dispatcher, lastError: () => string | null, check: () => void): Service {
  let timer: ReturnType<typeof setInterval> | undefined;
  let beat: Promise<void> = Promise.resolve();
  const once = async () => {
    try {
      check();
    } catch (error) {
      context.laneFailed("storage", error);
    }
    try {
      // What is claimed meanwhile is not among the leases that come back, and must not be taken for lost.
      const before = dispatcher.runs();
      const held = new Set((await context.store.heartbeat(context.endpointId, lastError())).map((lease) => lease.job_id));
      await Promise.all(before.filter((run) => !held.has(run.fence.job_id)).map((run) => run.detach()));
    } catch (error) {
      context.laneFailed("heartbeat", error);
    }
  };
  return service({
    start() {
      timer = setInterval(() => {
        beat = beat.then(once);
      }, INTERVAL_MS);
    },
    async stop() {
      clearInterval(timer);
      await beat;
    },
  });
}
