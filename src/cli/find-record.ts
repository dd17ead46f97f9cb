import { ANSWER_MS, namesOf, type Refusal, recordHolder, recordHolderFrom, silentNames, unasked } from "../api/client/record-holder.ts";
import type { ClusterClient } from "../api/client.ts";
import { RelayError } from "../domain/errors.ts";
import type { Installation } from "./installation.ts";
import type { CliIo } from "./io.ts";

/** Candidates that an error names. */
const SHOWN = 10;

const FULL_JOB_ID = /^(?:job_)?([0-9a-f]{32})$/;
/** The first twelve digits of an id are its time, so that fewer than these say little. */
const BEGINNING = /^(?:job_)?([0-9a-f]{8,31})$/;

interface Asking {
  readonly io: Pick<CliIo, "stderr">;
  readonly relay: Pick<Installation, "cluster" | "clustersMeant" | "clustersBeside" | "paths">;
}

/** What is looked for, as recordHolder is told it. */
type Sought = Parameters<typeof recordHolder> extends [unknown, ...infer Rest] ? Rest : never;

/** A job, and the cluster that has it. */
export interface FoundJob {
  readonly cluster: ClusterClient;
  readonly id: string;
}

/**
 * The job that a word means: its id, the beginning of one, or `last`. Where several clusters may be meant, those are asked that answer: ids
 * are unique everywhere, so that one in full is looked for beyond the cluster that the setting has for submissions.
 *
 * @param named the cluster that the command names, which is then the only one asked
 * @throws RelayError job_not_found; usage where a beginning is not enough; link_down, authorization_required where who could have it did not answer
 */
export async function findJob({ io, relay }: Asking, named: string | undefined, word: string): Promise<FoundJob> {
  if (word === "last") return ofLast({ io, relay }, named);
  const all = FULL_JOB_ID.exec(word)?.[1];
  if (all !== undefined) {
    const id = `job_${all}`;
    const cluster = await holder(relay, named, `job ${id}`, "job_not_found", (one, signal) => one.job(id, signal));
    return { cluster, id };
  }
  const digits = BEGINNING.exec(word)?.[1];
  if (digits !== undefined) return ofPrefix(await clients(relay, named), named, `job_${digits}`, word);
  // Where there is no cluster yet, that is what is wrong.
  await relay.clustersMeant(named);
  const hint = "a job is named by its id, by at least 8 digits of its beginning, or as last";
  throw new RelayError("job_not_found", `there is no job ${word}`, { job_id: word }, hint);
}

/** The cluster that has a task. */
export const clusterOfTask = ({ relay }: Asking, named: string | undefined, id: string): Promise<ClusterClient> =>
  holder(relay, named, `task ${id}`, "task_not_found", (cluster, signal) => cluster.taskEvents(id, { limit: 1, signal }));

/** The cluster that has an artifact. */
export const clusterOfArtifact = ({ relay }: Asking, named: string | undefined, id: string): Promise<ClusterClient> =>
  holder(relay, named, `artifact ${id}`, "artifact_not_found", (cluster, signal) => cluster.artifact(id, signal));

async function clients(relay: Asking["relay"], named: string | undefined): Promise<readonly ClusterClient[]> {
  return Promise.all((await relay.clustersMeant(named)).map((name) => relay.cluster(name)));
}

async function holder(relay: Asking["relay"], named: string | undefined, ...[what, missing, ask]: Sought): Promise<ClusterClient> {
  const meant = await clients(relay, named);
  if (named !== undefined || meant.length > 1) return recordHolder(meant, what, missing, ask);
  const [first] = meant;
  const others = await Promise.all((await relay.clustersBeside(first!.name)).map((name) => relay.cluster(name)));
  return recordHolderFrom(first!, others, what, missing, ask);
}

async function ofLast({ io, relay }: Asking, named: string | undefined): Promise<FoundJob> {
  const { lastJob } = await import("./job/last-job.ts");
  const { cluster, job_id } = lastJob(relay.paths.lastJobFile);
  if (named !== undefined && named !== cluster) {
    throw new RelayError(
      "job_not_found",
      `the last job that a command submitted from here went to ${cluster}`,
      { job_id },
      `--cluster ${cluster}`,
    );
  }
  await io.stderr.write(`notice: last is ${job_id} of ${cluster}\n`);
  return { cluster: await relay.cluster(cluster), id: job_id };
}

async function ofPrefix(clusters: readonly ClusterClient[], named: string | undefined, prefix: string, word: string): Promise<FoundJob> {
  const limit = SHOWN + 1;
  const sole = clusters.length === 1;
  const asked = clusters.map(async (cluster) => {
    const { jobs } = await cluster.jobs({ id_prefix: prefix, limit, ...(sole ? {} : { signal: AbortSignal.timeout(ANSWER_MS) }) });
    return jobs.map((job) => ({ cluster, id: job.job_id, title: job.title }));
  });
  if (sole) await asked[0];
  const answers = await Promise.allSettled(asked);
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const silent: Refusal[] = clusters.flatMap((cluster, at) => {
    const answer = answers[at]!;
    return answer.status === "rejected" ? [{ cluster, failure: answer.reason }] : [];
  });
  // What may be of another job, too, is of none.
  if (silent.length > 0) throw mayBeAnothers(word, found, silent);
  if (found.length === 1) return found[0]!;
  if (found.length === 0) {
    const hint =
      named === undefined && sole ? "an id in full is looked for on every cluster, its beginning on another with --cluster" : undefined;
    throw new RelayError("job_not_found", `no job of ${namesOf(clusters)} begins with ${word}`, { job_id: word }, hint);
  }
  const many = found.length > SHOWN ? `more than ${SHOWN}` : String(found.length);
  const shown = found.slice(0, SHOWN).map(({ cluster, id }) => (sole ? id : `${id} of ${cluster.name}`));
  const jobs = found.slice(0, SHOWN).map(({ cluster, id, title }) => ({ cluster: cluster.name, job_id: id, title }));
  throw new RelayError("usage", `${many} jobs begin with ${word}: ${shown.join(", ")}`, { jobs }, "more digits, or the whole id");
}

/** The one that was found is said, so that it can be named in full. */
function mayBeAnothers(word: string, found: readonly FoundJob[], silent: readonly Refusal[]): RelayError {
  if (found.length !== 1)
    return unasked(`job ${word} may be of ${silentNames(silent)}, which could not be asked`, silent, { otherwise: "the whole id" });
  const { id, cluster } = found[0]!;
  return unasked(`job ${word} is ${id} of ${cluster.name}, or another of ${silentNames(silent)}, which could not be asked`, silent, {
    otherwise: id,
  });
}
