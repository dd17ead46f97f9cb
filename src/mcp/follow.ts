import type { ClusterClient } from "../api/client.ts";
import { errorRule, RelayError } from "../domain/errors.ts";
import type { Event } from "../domain/event.ts";
import { Backoff } from "../lib/backoff.ts";
import { sleep } from "../lib/sleep.ts";

const FIRST_MS = 200;
const CAP_MS = 5_000;

/** Whether it is of use to come back later: a way may be had again, and somebody be let in. */
function comesBack(error: unknown): boolean {
  if (!(error instanceof RelayError)) return true;
  const { http } = errorRule(error.code);
  return http >= 500 || http === 401 || http === 403;
}

/** Do something again until it is done, through every outage. @throws RelayError where coming back is of no use; the signal's reason */
export async function throughOutages<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const backoff = new Backoff(FIRST_MS, CAP_MS);
  for (;;) {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      if (!comesBack(error)) throw error;
    }
    await sleep(backoff.next(), signal);
  }
}

/**
 * A job's events from `cursor` on, as they are committed, through every outage, until the job has ended or the signal is aborted.
 *
 * @throws RelayError where there is no such job
 */
export async function* followEvents(client: ClusterClient, jobId: string, cursor: number, signal: AbortSignal): AsyncGenerator<Event> {
  const backoff = new Backoff(FIRST_MS, CAP_MS);
  let next = cursor;
  while (!signal.aborted) {
    try {
      const events = client.eventStream(jobId, { cursor: next, signal });
      for (;;) {
        const { done, value } = await events.next();
        if (done === true) {
          if (value === "terminal") return;
          break;
        }
        next = value.seq + 1;
        backoff.reset();
        yield value;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!comesBack(error)) throw error;
    }
    await sleep(backoff.next(), signal).catch(() => undefined);
  }
}
