import { isRelayError } from "../domain/errors.ts";
import type { JobInput } from "../domain/input.ts";
import { inputVariable } from "../domain/input-name.ts";
import type { Job } from "../domain/job.ts";
import { LIMITS } from "../domain/limits.ts";
import type { QueueStore } from "../queue/store.ts";

/** A job's inputs in the order of their names, as many as are shown. */
export async function jobInputs(store: Pick<QueueStore, "artifact">, job: Job): Promise<JobInput[]> {
  if (job.kind !== "command" || job.spec.inputs === undefined) return [];
  const named = Object.entries(job.spec.inputs).sort(([one], [other]) => (one < other ? -1 : 1));
  const shown = await Promise.all(named.slice(0, LIMITS.inputsShown).map(([name, id]) => inputOf(store, name, id)));
  return shown.filter((input) => input !== null);
}

async function inputOf(store: Pick<QueueStore, "artifact">, name: string, artifactId: string): Promise<JobInput | null> {
  try {
    const { artifact_id, name: logical_name, size_bytes, sha256 } = await store.artifact(artifactId);
    return { name, variable: inputVariable(name), artifact_id, logical_name, size_bytes, sha256 };
  } catch (error) {
    // An edge keeps it; a queue that was damaged may have lost it all the same.
    if (isRelayError(error, "artifact_not_found")) return null;
    throw error;
  }
}
