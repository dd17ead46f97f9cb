import { isRelayError } from "../domain/errors.ts";
import type { Event } from "../domain/event.ts";
import type { Place } from "./clusters.ts";
import { followEvents, throughOutages } from "./follow.ts";

interface Followed {
  readonly listeners: Set<(event: Event) => void>;
  readonly over: AbortController;
  readonly begun: Promise<boolean>;
}

/** What one listener has of a job that is followed. */
export interface Following {
  /** Resolves when every later event is told of; what was committed before it is not. It waits through outages. False: there is no such job. */
  readonly begun: Promise<boolean>;
  stop(): void;
}

/** Follows the events of jobs, each job once however many want to hear of it. */
export class JobWatch {
  readonly #followed = new Map<string, Followed>();

  /** Call `listener` for every event from some moment on. */
  on(place: Place, jobId: string, listener: (event: Event) => void): Following {
    const key = `${place.entry.name}/${jobId}`;
    const followed = this.#followed.get(key) ?? this.#begin(key, place, jobId);
    const { listeners, over, begun } = followed;
    listeners.add(listener);
    const stop = (): void => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      over.abort();
      if (this.#followed.get(key) === followed) this.#followed.delete(key);
    };
    return { begun, stop };
  }

  #begin(key: string, place: Place, jobId: string): Followed {
    const { promise: begun, resolve } = Promise.withResolvers<boolean>();
    const followed = { listeners: new Set<(event: Event) => void>(), over: new AbortController(), begun };
    this.#followed.set(key, followed);
    void this.#follow(place, jobId, followed, resolve).finally(() => {
      if (this.#followed.get(key) === followed) this.#followed.delete(key);
    });
    return followed;
  }

  async #follow(place: Place, jobId: string, followed: Followed, begun: (there: boolean) => void): Promise<void> {
    const { listeners, over } = followed;
    try {
      const { total } = await throughOutages(over.signal, () => place.client.events(jobId, { limit: 1, signal: over.signal }));
      begun(true);
      for await (const event of followEvents(place, jobId, total + 1, over.signal)) {
        for (const listener of [...listeners]) listener(event);
      }
    } catch (error) {
      // There is nothing to hear of a job that is not there.
      begun(!isRelayError(error, "job_not_found"));
    }
  }

  close(): void {
    for (const { over } of this.#followed.values()) over.abort();
    this.#followed.clear();
  }
}
