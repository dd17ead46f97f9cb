import type { ClusterClient } from "../../api/client.ts";
import { isRelayError } from "../../domain/errors.ts";
import { sleep } from "../../lib/waiting/sleep.ts";
import type { Reconnect } from "./reconnect.ts";

/** How long nothing may come through before the worker is asked whether it lives, and how long it has to say so; milliseconds. */
export interface Patience {
  readonly quietMs: number;
  readonly answerMs: number;
}

export const PATIENCE: Patience = { quietMs: 10_000, answerMs: 10_000 };

/**
 * Do something that waits for what comes over a standing connection, and tell a quiet one from one whose other end hangs: while
 * nothing comes, the worker is asked for a sign of life; when it gives none, that is said once, and again when it does.
 *
 * Nothing is ended by this: a worker that was stopped may go on, and one that is gone breaks the connection.
 */
export async function withLifeSigns<T>(
  cluster: ClusterClient,
  reconnect: Reconnect,
  work: () => Promise<T>,
  patience: Patience = PATIENCE,
): Promise<T> {
  const over = new AbortController();
  // What cannot be said changes nothing about the work.
  const watching = watch(cluster, reconnect, patience, over.signal).catch(() => undefined);
  try {
    return await work();
  } finally {
    over.abort();
    await watching;
  }
}

async function watch(cluster: ClusterClient, reconnect: Reconnect, { quietMs, answerMs }: Patience, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const left = quietMs - reconnect.silentMs;
    if (left > 0) {
      await sleep(left, over).catch(() => undefined);
      continue;
    }
    const limit = AbortSignal.timeout(answerMs);
    try {
      await cluster.alive(AbortSignal.any([limit, over]));
      await reconnect.alive();
    } catch (error) {
      if (over.aborted) return;
      if (limit.aborted) await reconnect.silent(`the worker of ${cluster.name}`);
      else if (isRelayError(error, "desktop_unavailable")) await reconnect.silent("the desktop daemon");
      // Whatever else: whoever waits for the connection sees it break. Asked again soon, so that its return is seen.
      await sleep(quietMs / 10, over).catch(() => undefined);
    }
  }
}
