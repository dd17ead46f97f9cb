import type { ClusterClient } from "../../api/client.ts";
import type { Artifact } from "../../domain/artifact.ts";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { FilePaths } from "../../lib/files/file-paths.ts";

/** All artifacts of a job, in the order in which they were made. */
async function* artifactsOf(cluster: ClusterClient, jobId: string): AsyncGenerator<Artifact> {
  for (let cursor = 1; ; ) {
    const page = await cluster.artifacts(jobId, { cursor, limit: LIMITS.pageMax });
    yield* page.artifacts;
    if (page.next_cursor === cursor || page.next_cursor > page.total) return;
    cursor = page.next_cursor;
  }
}

/** The artifact of a name, the last one where there are several. @throws RelayError artifact_not_found */
export async function artifactNamed(cluster: ClusterClient, jobId: string, name: string): Promise<Artifact> {
  let found: Artifact | null = null;
  for await (const artifact of artifactsOf(cluster, jobId)) if (artifact.name === name) found = artifact;
  if (found !== null) return found;
  throw new RelayError("artifact_not_found", `${jobId} left no file ${JSON.stringify(name)}`, {}, `clio-relay job list-artifacts ${jobId}`);
}

/**
 * The files that a job's --output kept, by name; of several attempts the last one's, and none of an earlier one that is in the way of these. `earlier` counts
 * what is left out.
 */
export async function outputsOf(cluster: ClusterClient, jobId: string): Promise<{ outputs: Artifact[]; earlier: number }> {
  const all: Artifact[] = [];
  for await (const artifact of artifactsOf(cluster, jobId)) if (artifact.kind === "execution_output") all.push(artifact);
  const taken = new FilePaths();
  const outputs = all.toReversed().filter(({ name }) => taken.take(name));
  return { outputs: outputs.reverse(), earlier: all.length - outputs.length };
}
