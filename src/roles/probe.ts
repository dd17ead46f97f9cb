import { isErrno } from "../lib/files/atomic-file.ts";
import { sleep } from "../lib/waiting/sleep.ts";

/** How long is waited before it is tried again to get into the queue of a listener, in milliseconds. */
const QUEUE_MS = 50;

/** One round trip to the app on a Unix socket: its duration in milliseconds and its version. Throws what fetch throws, and the signal's reason. */
export async function probe(
  socket: string,
  withinMs: number,
  signal?: AbortSignal,
): Promise<{ roundTripMs: number; version: string | null }> {
  const over = AbortSignal.any([AbortSignal.timeout(withinMs), ...(signal === undefined ? [] : [signal])]);
  const start = performance.now();
  const request = { unix: socket, keepalive: false, proxy: false, signal: over } as unknown as RequestInit;
  const answer = await whileFull(over, () => fetch("http://relay/healthz", request));
  await answer.arrayBuffer();
  return { roundTripMs: performance.now() - start, version: answer.headers.get("clio-relay-version") };
}

/** Do what connects to a Unix socket, again and again for as long as as many as may wait there to be let in (EAGAIN of connect(2)). @throws the signal's reason, and what it throws */
export async function whileFull<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error)) throw error;
    }
    await sleep(QUEUE_MS, signal);
  }
}

/** Whether a failed fetch means that as many wait to be let in as may, so that nothing was sent. */
export const isFull = (error: unknown): boolean => isErrno(error, "EAGAIN");

/** Whether a failed fetch means that nobody listens where it went, so that nothing was sent. */
export const nobodyListens = (error: unknown): boolean =>
  isErrno(error, "ENOENT", "ECONNREFUSED", "ENOTDIR", "FailedToOpenSocket", "ConnectionRefused");
