import type { ClusterClient } from "../api/client.ts";
import { ANSWER_MS, namesOf, recordHolder, unasked } from "../api/record-holder.ts";
import { RelayError } from "../domain/errors.ts";
import type { Installation } from "./installation.ts";
import type { CliIo } from "./io.ts";

/** Candidates that an error names. */
const SHOWN = 10;

const FULL_JOB_ID = /^job_[0-9a-f]{32}$/;
/** The first twelve digits of an id are its time, so that fewer than these say little. */
const BEGINNING = /^(?:job_)?([0-9a-f]{8,31})$/;

interface Asking {
  readonly io: Pick<CliIo, "stderr">;
  readonly relay: Pick<Installation, "cluster" | "clustersMeant" | "paths">;
}

/** A job, and the cluster that has it. */
export interface FoundJob {
  readonly cluster: ClusterClient;
  readonly id: string;
}

/**
 * The job that a word means: its id, the beginning of one, or `last`. Where several clusters may be meant, those are asked that answer: ids
 * are unique everywhere.
 *
 * @param named the cluster that the command names, which is then the only one asked
 * @throws RelayError job_not_found; usage where a beginning is not enough; link_down where who could have it did not answer
 */
export async function findJob({ io, relay }: Asking, named: string | undefined, word: string): Promise<FoundJob> {
  if (word === "last") return ofLast({ io, relay }, named);
  const clusters = await clients(relay, named);
  if (FULL_JOB_ID.test(word)) {
    return {
      cluster: await recordHolder(clusters, `job ${word}`, "job_not_found", (cluster, signal) => cluster.job(word, signal)),
      id: word,
    };
  }
  const digits = BEGINNING.exec(word)?.[1];
  if (digits !== undefined) return ofPrefix(clusters, `job_${digits}`, word);
  const hint = "a job is named by its id, by at least 8 digits of its beginning, or as last";
  throw new RelayError("job_not_found", `there is no job ${word}`, { job_id: word }, hint);
}

/** The cluster that has a task. */
export const clusterOfTask = async ({ relay }: Asking, named: string | undefined, id: string): Promise<ClusterClient> =>
  recordHolder(await clients(relay, named), `task ${id}`, "task_not_found", (cluster, signal) =>
    cluster.taskEvents(id, { limit: 1, signal }),
  );

/** The cluster that has an artifact. */
export const clusterOfArtifact = async ({ relay }: Asking, named: string | undefined, id: string): Promise<ClusterClient> =>
  recordHolder(await clients(relay, named), `artifact ${id}`, "artifact_not_found", (cluster, signal) => cluster.artifact(id, signal));

async function clients(relay: Asking["relay"], named: string | undefined): Promise<readonly ClusterClient[]> {
  return Promise.all((await relay.clustersMeant(named)).map((name) => relay.cluster(name)));
}

async function ofLast({ io, relay }: Asking, named: string | undefined): Promise<FoundJob> {
  const { lastJob } = await import("./job/last-job.ts");
  const { cluster, job_id } = lastJob(relay.paths.lastJobFile);
  if (named !== undefined && named !== cluster) {
    throw new RelayError(
      "job_not_found",
      `the last job that was submitted from here went to ${cluster}`,
      { job_id },
      `--cluster ${cluster}`,
    );
  }
  await io.stderr.write(`notice: last is ${job_id} of ${cluster}\n`);
  return { cluster: await relay.cluster(cluster), id: job_id };
}

async function ofPrefix(clusters: readonly ClusterClient[], prefix: string, word: string): Promise<FoundJob> {
  const limit = SHOWN + 1;
  const sole = clusters.length === 1;
  const asked = clusters.map(async (cluster) => {
    const { jobs } = await cluster.jobs({ id_prefix: prefix, limit, ...(sole ? {} : { signal: AbortSignal.timeout(ANSWER_MS) }) });
    return jobs.map((job) => ({ cluster, id: job.job_id, title: job.title }));
  });
  if (sole) await asked[0];
  const answers = await Promise.allSettled(asked);
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const silent = clusters.filter((_, at) => answers[at]!.status === "rejected");
  // What may be of another job, too, is of none.
  if (silent.length > 0) throw unasked(`job ${word}`, silent, "or give the whole id");
  if (found.length === 1) return found[0]!;
  if (found.length === 0) throw new RelayError("job_not_found", `no job of ${namesOf(clusters)} begins with ${word}`, { job_id: word });
  const many = found.length > SHOWN ? `more than ${SHOWN}` : String(found.length);
  const shown = found.slice(0, SHOWN).map(({ cluster, id }) => (sole ? id : `${id} of ${cluster.name}`));
  const jobs = found.slice(0, SHOWN).map(({ cluster, id, title }) => ({ cluster: cluster.name, job_id: id, title }));
  throw new RelayError("usage", `${many} jobs begin with ${word}: ${shown.join(", ")}`, { jobs }, "more digits, or the whole id");
}
