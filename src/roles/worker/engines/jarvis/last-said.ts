import * as v from "valibot";
import { JarvisExecution } from "../../../../domain/views.ts";
import type { QueueStore } from "../../../../queue/store.ts";

const Said = v.nonNullable(JarvisExecution.entries.said);

/** What JARVIS-CD said last of a job's pipeline, as the job's events have it; null where it has said nothing. */
export async function lastSaid(store: Pick<QueueStore, "latestEvent">, jobId: string): Promise<JarvisExecution["said"]> {
  const event = await store.latestEvent(jobId, "runtime.metadata_ingested", "state");
  if (event === null) return null;
  const { pipeline_id, mode, state, updated_at, scheduler_native_id } = event.payload;
  const said = v.safeParse(Said, { pipeline_id, mode, state, updated_at, scheduler_native_id });
  return said.success ? said.output : null;
}
