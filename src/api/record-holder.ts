import { isRelayError, RelayError } from "../domain/errors.ts";
import type { ClusterClient } from "./client.ts";

/** How long a cluster has to answer where several are asked for one record, in milliseconds. */
export const ANSWER_MS = 3_000;

/**
 * The cluster that has a record. Where there are several, the first that has it is taken, so that one that hangs holds nobody up; a sole
 * one is not asked.
 *
 * @throws RelayError `missing` where all answered that they do not have it, link_down where some did not answer
 */
export async function recordHolder(
  clusters: readonly ClusterClient[],
  what: string,
  missing: "job_not_found" | "task_not_found" | "artifact_not_found",
  ask: (cluster: ClusterClient, signal: AbortSignal) => Promise<unknown>,
): Promise<ClusterClient> {
  if (clusters.length === 1) return clusters[0]!;
  const over = new AbortController();
  const answers = clusters.map(async (cluster) => {
    await ask(cluster, AbortSignal.any([over.signal, AbortSignal.timeout(ANSWER_MS)]));
    return cluster;
  });
  try {
    return await Promise.any(answers);
  } catch {
    const failures = await Promise.allSettled(answers);
    const silent = clusters.filter((_, at) => !isRelayError((failures[at] as PromiseRejectedResult).reason, missing));
    if (silent.length > 0) throw unasked(what, silent);
    throw new RelayError(missing, `there is no ${what} on ${namesOf(clusters)}`);
  } finally {
    over.abort();
  }
}

export const namesOf = (clusters: readonly ClusterClient[]): string => clusters.map(({ name }) => name).join(", ");

/** No answer is not an absence. @param otherwise what else can be done than naming the cluster */
export function unasked(what: string, silent: readonly ClusterClient[], otherwise?: string): RelayError {
  const hint = `--cluster NAME${otherwise === undefined ? "" : `, ${otherwise}`}`;
  const clusters = silent.map(({ name }) => name);
  return new RelayError("link_down", `${what} may be of ${namesOf(silent)}, which could not be asked`, { clusters }, hint);
}
