import type { Artifact } from "../../domain/artifact.ts";
import { RelayError } from "../../domain/errors.ts";
import type { JobStatus } from "../../domain/views.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";
import { artifactView, fitting, isReadable, jobView, progressView } from "../views.ts";

/** Runs that are looked through for one that is named by its execution, and how many at a time. */
const RUNS = 100;
const AT_ONCE = 10;
/** A document of JARVIS' that is larger is left out of an answer. */
const DOCUMENT_BYTES = 12 * 1024;
const ARTIFACTS = 500;

/** What is asked of a run. */
export interface ExecutionQuestion {
  readonly pipeline_id: string;
  readonly execution_id: string;
  readonly job_id: string | undefined;
  readonly progress: boolean;
  readonly services: boolean;
  readonly artifacts: { readonly cursor: number; readonly page_size: number };
}

/**
 * A run of JARVIS-CD as the worker knows it: the job, what JARVIS says while it runs, and its own documents when it has ended.
 *
 * @throws RelayError job_not_found where no run of the cluster is meant, and as any operation
 */
export async function executionOf(place: Place, question: ExecutionQuestion, signal: AbortSignal) {
  const ask = <T>(work: (signal: AbortSignal) => Promise<T>) => asked(`the worker of ${place.entry.name}`, signal, work);
  const status = await ask((bounded) => statusOf(place, question, bounded));
  const { job } = status;
  const artifacts =
    job.outcome === null
      ? []
      : (await ask((bounded) => place.client.artifacts(job.job_id, { limit: ARTIFACTS, signal: bounded }))).artifacts;
  const omitted: string[] = [];
  const document = async (name: string): Promise<Record<string, unknown> | null> => {
    const artifact = artifacts.findLast((one) => one.kind === "runtime_metadata" && one.name === name);
    if (artifact === undefined) return null;
    if (artifact.size_bytes > DOCUMENT_BYTES) omitted.push(name);
    else return ask((bounded) => readObject(place, artifact, bounded));
    return null;
  };
  const { cursor, page_size } = question.artifacts;
  const left = artifacts.filter((artifact) => artifact.kind === "execution_output" && isReadable(artifact));
  const page = fitting(left.slice(cursor, cursor + page_size).map(artifactView), 4 * DOCUMENT_BYTES).items;
  const answer = {
    ...jobView(place, job),
    execution_handle: {
      pipeline_id: question.pipeline_id,
      execution_id: status.jarvis?.execution_id ?? question.execution_id,
      job_id: job.job_id,
    },
    runtime_metadata: status.jarvis?.said ?? null,
    execution_record: await document("jarvis-record.json"),
    progress: question.progress
      ? ((await document("jarvis-progress.json")) ?? { reports: status.progress.slice(0, 20).map(progressView) })
      : null,
    service_runtimes: question.services ? await document("jarvis-service-runtimes.json") : null,
    artifact_page: { artifacts: page, next_cursor: cursor + page.length < left.length ? String(cursor + page.length) : null },
  };
  return { ...answer, not_available: notAvailable(answer, omitted) };
}

/** The run that is meant: by its job, else by its execution among the latest. */
async function statusOf(
  { client, entry }: Place,
  { job_id, execution_id, pipeline_id }: ExecutionQuestion,
  signal: AbortSignal,
): Promise<JobStatus> {
  const isMeant = ({ jarvis }: JobStatus): boolean => jarvis?.execution_id === execution_id;
  if (job_id !== undefined) {
    const status = await client.status(job_id, signal);
    if (isMeant(status)) return status;
  } else {
    const { jobs } = await client.jobs({ kind: "jarvis", inputs: false, limit: RUNS, signal });
    for (let at = 0; at < jobs.length; at += AT_ONCE) {
      const some = await Promise.all(jobs.slice(at, at + AT_ONCE).map((job) => client.status(job.job_id, signal)));
      const status = some.find(isMeant);
      if (status !== undefined) return status;
    }
  }
  throw new RelayError(
    "job_not_found",
    `no run of ${pipeline_id} on ${entry.name} is ${execution_id}`,
    { cluster: entry.name, execution_id, ...(job_id === undefined ? { runs_looked_through: RUNS } : { job_id }) },
    "job_id of the answer of jarvis_run finds it, however old it is",
  );
}

async function readObject({ client }: Place, { artifact_id }: Artifact, signal: AbortSignal): Promise<Record<string, unknown> | null> {
  const response = await client.artifactContent(artifact_id, { signal });
  try {
    const value: unknown = await response.json();
    return value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** What was asked for and is not in an answer, with the reason. */
function notAvailable(answer: { readonly outcome: unknown; readonly execution_record: unknown }, omitted: readonly string[]): string[] {
  return [
    ...(answer.outcome === null ? ["execution_record, service_runtimes and artifacts: the worker keeps them when the run has ended"] : []),
    ...(answer.outcome !== null && answer.execution_record === null && !omitted.includes("jarvis-record.json")
      ? ["execution_record: JARVIS-CD has said nothing of this run"]
      : []),
    ...omitted.map((name) => `${name}: it is too long for an answer`),
  ];
}
