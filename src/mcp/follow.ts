import type { ClusterClient } from "../api/client.ts";
import { errorRule, RelayError } from "../domain/errors.ts";
import type { Event } from "../domain/event.ts";
import { LIMITS } from "../domain/limits.ts";
import { isTerminal } from "../domain/transitions.ts";
import { Backoff } from "../lib/waiting/backoff.ts";
import { sleep } from "../lib/waiting/sleep.ts";
import type { Place } from "./clusters.ts";

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

/** Where a job is followed. */
export type Followable = Pick<Place, "client" | "held">;

/**
 * A job's events from `cursor` on, as they are committed, through every outage, until the job has ended or the signal is aborted. Where too many requests wait already, it is
 * looked for them again and again.
 *
 * @throws RelayError where there is no such job
 */
export async function* followEvents(
  { client, held }: Followable,
  jobId: string,
  cursor: number,
  signal: AbortSignal,
): AsyncGenerator<Event> {
  const backoff = new Backoff(FIRST_MS, CAP_MS);
  let next = cursor;
  while (!signal.aborted) {
    const release = held.take();
    try {
      const events = release === null ? page(client, jobId, next, signal) : client.eventStream(jobId, { cursor: next, signal });
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
    } finally {
      release?.();
    }
    await sleep(release === null ? held.lookMs : backoff.next(), signal).catch(() => undefined);
  }
}

/** The events that there are by now, as `eventStream` has them. */
async function* page(client: ClusterClient, jobId: string, cursor: number, signal: AbortSignal): AsyncGenerator<Event, "terminal" | "cut"> {
  // What it was before: whatever a job that has ended left is on the page.
  const { state } = await client.job(jobId, signal);
  const { events } = await client.events(jobId, { cursor, limit: LIMITS.pageMax, signal });
  yield* events;
  return isTerminal(state) && events.length === 0 ? "terminal" : "cut";
}
