import { RelayError } from "../../domain/errors.ts";
import { SCHEDULER_ID_PATTERN } from "../../domain/id.ts";
import type { SchedulerName } from "../../domain/scheduler.ts";
import type { SchedulerCanceled, SchedulerObserved } from "../../domain/views.ts";
import type { HttpPeer } from "./http-peer.ts";

const views = async () => (await import("../answers.ts")).RECORDS;

/** As a part of a path. What is no id is answered here, so that it never leads to another route. */
function place(id: string): string {
  if (SCHEDULER_ID_PATTERN.test(id)) return encodeURIComponent(id);
  throw new RelayError("request_validation_failed", `${JSON.stringify(id.slice(0, 200))} is no id of a scheduler's job`);
}

interface ObserveOptions {
  /** The cluster's own where it is left out. */
  readonly provider?: SchedulerName | undefined;
  readonly signal?: AbortSignal;
}

/** Jobs of one cluster's scheduler, by its own ids. */
export class SchedulerClient {
  constructor(private readonly http: HttpPeer) {}

  /** @throws RelayError scheduler_unavailable, scheduler_failed */
  async observe(id: string, { provider, signal }: ObserveOptions = {}): Promise<SchedulerObserved> {
    return this.http.json(`/scheduler/${place(id)}`, async () => (await views()).SchedulerObserved, { query: { provider }, signal });
  }

  /** Only of a job of this cluster's queue. @throws RelayError resource_ownership_refused, scheduler_unavailable, scheduler_failed */
  async cancel(id: string, provider: SchedulerName | null = null): Promise<SchedulerCanceled> {
    const request = { method: "POST", body: { provider }, repeatable: true };
    return this.http.json(`/scheduler/${place(id)}/cancel`, async () => (await views()).SchedulerCanceled, request);
  }
}
