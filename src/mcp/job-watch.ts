import type { Event } from "../domain/event.ts";
import type { Place } from "./clusters.ts";
import { followEvents } from "./follow.ts";

interface Followed {
  readonly listeners: Set<(event: Event) => void>;
  readonly over: AbortController;
}

/** Follows the events of jobs, each job once however many want to hear of it. */
export class JobWatch {
  readonly #followed = new Map<string, Followed>();

  /** Call `listener` for every event from now on. Returns how to stop. */
  on(place: Place, jobId: string, listener: (event: Event) => void): () => void {
    let followed = this.#followed.get(jobId);
    if (followed === undefined) {
      followed = { listeners: new Set(), over: new AbortController() };
      this.#followed.set(jobId, followed);
      void this.#follow(place, jobId, followed);
    }
    const { listeners, over } = followed;
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      over.abort();
      if (this.#followed.get(jobId)?.over === over) this.#followed.delete(jobId);
    };
  }

  async #follow(place: Place, jobId: string, { listeners, over }: Followed): Promise<void> {
    try {
      const { total } = await place.client.events(jobId, { limit: 1, signal: over.signal });
      for await (const event of followEvents(place.client, jobId, total + 1, over.signal)) {
        for (const listener of [...listeners]) listener(event);
      }
    } catch {
      // There is nothing to hear of a job that is not there.
    } finally {
      if (this.#followed.get(jobId)?.over === over) this.#followed.delete(jobId);
    }
  }

  close(): void {
    for (const { over } of this.#followed.values()) over.abort();
    this.#followed.clear();
  }
}
