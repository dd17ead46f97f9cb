import type { ClusterClient } from "../api/client.ts";
import { errorRule, RelayError } from "../domain/errors.ts";
import type { Event } from "../domain/event.ts";
import { Backoff } from "../lib/backoff.ts";
import { sleep } from "../lib/sleep.ts";

const FIRST_MS = 200;
const CAP_MS = 5_000;

/** Whether it is of use to come back later. */
const comesBack = (error: unknown): boolean => !(error instanceof RelayError) || errorRule(error.code).http >= 500;

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
