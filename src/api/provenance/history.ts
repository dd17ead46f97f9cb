import type { Artifact } from "../../domain/artifact.ts";
import type { Attempt } from "../../domain/attempt.ts";
import type { Job } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { UsedArtifactRef } from "../../domain/lineage.ts";
import type { TransformRef } from "../../domain/transform.ts";
import type { ClusterClient } from "../client.ts";

/** Something that a job used, and what is known of it. */
export interface Input {
  readonly edge: UsedArtifactRef;
  readonly artifact: Artifact;
}

/** All that a cluster has on record of how a job came to what it left. */
export interface History {
  readonly job: Job;
  readonly attempts: readonly Attempt[];
  readonly inputs: readonly Input[];
  /** In the order in which they were made, of all attempts. */
  readonly artifacts: readonly Artifact[];
  readonly transform: TransformRef | null;
}

/** Requests for single records that are out at a time. */
const AT_ONCE = 8;

/** Read what there is of a job. @throws RelayError job_not_found, or what keeps the cluster from answering */
export async function historyOf(cluster: ClusterClient, jobId: string, signal: AbortSignal): Promise<History> {
  const job = await cluster.job(jobId, signal);
  const [attempts, artifacts, edges, transform] = await Promise.all([
    numbered(async (cursor) => {
      const page = await cluster.attempts(jobId, { cursor, limit: LIMITS.pageMax, signal });
      return { items: page.attempts, next: page.next_cursor };
    }),
    numbered(async (cursor) => {
      const page = await cluster.artifacts(jobId, { cursor, limit: LIMITS.pageMax, signal });
      return { items: page.artifacts, next: page.next_cursor };
    }),
    edgesOf(cluster, jobId, signal),
    cluster.lineage.transform(jobId, signal),
  ]);
  return { job, attempts, artifacts, transform, inputs: await inputsOf(cluster, edges, signal) };
}

/** All entries of all pages; an empty one is the end. */
async function numbered<T>(page: (cursor: number) => Promise<{ items: readonly T[]; next: number }>): Promise<T[]> {
  const all: T[] = [];
  for (let cursor = 1; ; ) {
    const { items, next } = await page(cursor);
    if (items.length === 0) return all;
    all.push(...items);
    cursor = next;
  }
}

async function edgesOf(cluster: ClusterClient, jobId: string, signal: AbortSignal): Promise<UsedArtifactRef[]> {
  const all: UsedArtifactRef[] = [];
  for (let page: { cursor?: string } = {}; ; ) {
    const { used_artifacts, next_cursor } = await cluster.lineage.usedArtifacts(jobId, { ...page, limit: LIMITS.pageMax, signal });
    if (used_artifacts.length === 0) return all;
    all.push(...used_artifacts);
    page = { cursor: next_cursor };
  }
}

async function inputsOf(cluster: ClusterClient, edges: readonly UsedArtifactRef[], signal: AbortSignal): Promise<Input[]> {
  const inputs: Input[] = [];
  for (let at = 0; at < edges.length; at += AT_ONCE) {
    const some = edges.slice(at, at + AT_ONCE);
    inputs.push(...(await Promise.all(some.map(async (edge) => ({ edge, artifact: await cluster.artifact(edge.artifact_id, signal) })))));
  }
  return inputs;
}

/** When the job's first process started; null before. */
export const startOf = ({ attempts }: History): string | null => attempts.find(({ started_at }) => started_at !== null)?.started_at ?? null;

/** When its last attempt ended, or it was canceled in the queue; null before. */
export const endOf = ({ job, attempts }: History): string | null =>
  job.outcome === null ? null : (attempts.findLast(({ ended_at }) => ended_at !== null)?.ended_at ?? job.updated_at);

/** The host of its last process; null where it never had one. */
export const hostOf = ({ attempts }: History): string | null =>
  attempts.findLast(({ process }) => process !== null)?.process?.hostname ?? null;

/** The attempt that left an artifact; null where the record does not say. */
export const attemptOf = ({ metadata }: Artifact): number | null => (typeof metadata["attempt"] === "number" ? metadata["attempt"] : null);
