import { DesktopClient } from "../../api/client/desktop-client.ts";
import type { ClusterClient, JobListOptions } from "../../api/client.ts";
import type { Environment } from "../../config/environment.ts";
import { type Paths, resolvePaths } from "../../config/paths.ts";
import { loadSettings, type Settings } from "../../config/settings.ts";
import { readSettingsFile } from "../../config/settings-file.ts";
import { RelayError } from "../../domain/errors.ts";
import { isId } from "../../domain/id.ts";
import type { JobState } from "../../domain/job.ts";
import type { JobSummary } from "../../domain/views.ts";
import { desktopDoor } from "../../roles/desktop/door.ts";
import type { Suggestion } from "../values.ts";
import type { Candidate } from "./wanted.ts";

/** How long the daemon has for all that it is asked, in milliseconds: somebody has pressed a key, and waits. */
const ANSWER_MS = 500;
/** Records of each cluster, and of all. */
const SHOWN = 40;
/** Jobs of a cluster whose tasks or artifacts are looked at. */
const JOBS_LOOKED_AT = 5;
const CLUSTERS_ASKED = 16;

export type LiveKind = Exclude<Suggestion, readonly string[] | "file" | "directory">;

export interface Asked {
  /** The cluster that the command line names. */
  readonly cluster: string | null;
  /** What has been typed of the value. */
  readonly typed: string;
}

/**
 * What there is of a kind: clusters by the registry, everything else by the daemon that runs, asked for clusters whose links are up. Nothing is
 * started, dialed or asked of a person for it. What does not answer in time has nothing, nor what answers with anything else than ids where these belong.
 */
export async function liveValues(kind: LiveKind, asked: Asked, env: Environment): Promise<readonly Candidate[]> {
  const paths = resolvePaths(env);
  if (kind === "cluster") {
    const { readClusters } = await import("../../config/clusters.ts");
    return readClusters(paths, env).clusters.map(({ name, mode }) => [name, mode === "local" ? "this machine" : mode]);
  }
  const settings = loadSettings(env, readSettingsFile(paths));
  const signal = AbortSignal.timeout(ANSWER_MS);
  const clusters = await reachable(paths, env, settings, asked.cluster, signal);
  const answers = await Promise.allSettled(clusters.map((cluster) => VALUES[kind](cluster, asked.typed, signal)));
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const last = kind === "job" || kind === "active job" ? await lastOne(paths) : null;
  if (last === null || (kind === "active job" && !found.some(([id]) => id === last.job_id))) return found.slice(0, SHOWN);
  return [["last", `${last.job_id} of ${last.cluster}`] as const, ...found].slice(0, SHOWN);
}

/** Clusters that answer over what is there already. */
async function reachable(
  paths: Paths,
  env: Environment,
  settings: Settings,
  named: string | null,
  signal: AbortSignal,
): Promise<readonly ClusterClient[]> {
  const { local_listen: listen, default_cluster } = settings;
  const desktop = new DesktopClient(
    desktopDoor({
      paths,
      env,
      listen: listen === "auto" ? (env.platform === "win32" ? "tcp" : "unix") : listen,
      start: () => Promise.reject(new RelayError("desktop_unavailable", "no daemon is running")),
    }),
  );
  const meant = named ?? default_cluster;
  const links = await desktop.links(signal);
  return links
    .filter(({ cluster, state }) => state === "up" && (meant === null || cluster === meant))
    .slice(0, CLUSTERS_ASKED)
    .map(({ cluster }) => desktop.cluster(cluster));
}

const ACTIVE_JOB_STATES = ["queued", "leased", "running"] as const satisfies readonly JobState[];

type Ask = (cluster: ClusterClient, typed: string, signal: AbortSignal) => Promise<Candidate[]>;

/** A beginning of an id that the worker can look up by itself. */
const BEGINNING = /^job_[0-9a-f]{8,32}$/;

/** What `job list` shows; by its id, also a job that stands for a staged file. */
const recentJobs = (cluster: ClusterClient, limit: number, signal: AbortSignal, typed = ""): Promise<JobSummary[]> =>
  jobsOf(cluster, limit, signal, BEGINNING.test(typed) ? { id_prefix: typed } : { inputs: false });

async function jobsOf(cluster: ClusterClient, limit: number, signal: AbortSignal, which: JobListOptions): Promise<JobSummary[]> {
  const { jobs } = await cluster.jobs({ limit, signal, ...which });
  return jobs.filter(({ job_id }) => isId(job_id)).slice(0, limit);
}

const shownJob = ({ job_id, state, title }: JobSummary): Candidate => [job_id, `${state}: ${title}`];

/** What each of the last jobs has. */
const ofJobs =
  <T>(
    list: (cluster: ClusterClient, job: JobSummary, signal: AbortSignal) => Promise<readonly T[]>,
    show: (one: T, job: JobSummary) => Candidate[],
  ): Ask =>
  async (cluster, _typed, signal) => {
    const jobs = await jobsOf(cluster, JOBS_LOOKED_AT, signal, {});
    const lists = await Promise.allSettled(jobs.map(async (job) => (await list(cluster, job, signal)).flatMap((one) => show(one, job))));
    return lists.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  };

const artifacts = async (cluster: ClusterClient, { job_id }: JobSummary, signal: AbortSignal) =>
  (await cluster.artifacts(job_id, { limit: SHOWN, signal })).artifacts;

const VALUES: Readonly<Record<Exclude<LiveKind, "cluster">, Ask>> = {
  job: async (cluster, typed, signal) => (await recentJobs(cluster, SHOWN, signal, typed)).map(shownJob),
  "active job": async (cluster, typed, signal) =>
    (await jobsOf(cluster, SHOWN, signal, { state: ACTIVE_JOB_STATES, ...(BEGINNING.test(typed) ? { id_prefix: typed } : {}) })).map(
      shownJob,
    ),
  artifact: ofJobs(artifacts, ({ artifact_id, name }, { title }) => (isId(artifact_id) ? [[artifact_id, `${name} of ${title}`]] : [])),
  "pinned artifact": ofJobs(artifacts, ({ artifact_id, sha256, name }, { title }) =>
    isId(artifact_id) && /^[0-9a-f]{64}$/.test(sha256) ? [[`${artifact_id}=${sha256}`, `${name} of ${title}`]] : [],
  ),
  task: ofJobs(
    async (cluster, { job_id }, signal) => (await cluster.tasks(job_id, { limit: SHOWN, signal })).tasks,
    ({ task_id, state }, { title }) => (isId(task_id) ? [[task_id, `${state}: ${title}`]] : []),
  ),
  key: async (cluster, _typed, signal) =>
    (await cluster.keys(signal)).keys.flatMap(({ fingerprint, comment }): Candidate[] =>
      /^SHA256:[A-Za-z0-9+/]{43}$/.test(fingerprint) ? [[fingerprint, comment]] : [],
    ),
};

/** What `last` means, where that is a job. */
async function lastOne(paths: Paths): Promise<{ readonly job_id: string; readonly cluster: string } | null> {
  try {
    const { lastJob } = await import("../job/last-job.ts");
    return lastJob(paths.lastJobFile);
  } catch {
    return null;
  }
}
