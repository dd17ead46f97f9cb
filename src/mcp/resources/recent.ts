import type { Clusters } from "../clusters.ts";
import { jobAddress } from "./address.ts";

/** Jobs of each cluster that are listed, and clusters whose jobs are. */
const EACH = 10;
const CLUSTERS = 20;
/** A cluster that takes longer is left out, in milliseconds. */
const PATIENCE_MS = 1_000;

/** The latest jobs of the clusters whose link is up, as resources. */
export async function recentJobs(clusters: Clusters, signal: AbortSignal) {
  const links = await clusters.links(signal).catch(() => []);
  const up = links.filter(({ state }) => state === "up").slice(0, CLUSTERS);
  const lists = await Promise.allSettled(
    up.map(async ({ cluster }) => {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
      const { client } = await clusters.named(cluster, signal);
      const { jobs } = await client.jobs({ limit: EACH, inputs: false, signal: bounded });
      return jobs.map((job) => ({
        uri: jobAddress(cluster, job.job_id),
        name: job.job_id,
        title: job.title,
        mimeType: "application/json",
        description: `a ${job.kind} job of ${cluster}, ${job.state}`,
      }));
    }),
  );
  return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
}
