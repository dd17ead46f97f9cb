import type { ClusterClient } from "../../api/client.ts";
import { type ErrorCode, EXIT, RelayError } from "../../domain/errors.ts";
import type { JobReceipt, JobSubmissionInput } from "../../domain/job.ts";
import type { TraceContext } from "../../domain/trace.ts";
import { canonicalJson, sha256Hex } from "../../lib/digest.ts";
import { interruptible } from "../follow/interrupt.ts";
import { hintAtLog } from "../follow/written-elsewhere.ts";
import type { CliIo } from "../io.ts";
import { withReason } from "../print/outcome-text.ts";
import { printJson } from "../print/table.ts";
import type { Call } from "../verb.ts";
import { keepLastJob } from "./last-job.ts";
import { surroundingJob } from "./surrounding-job.ts";

/** A submission that has everything but, perhaps, its key. */
export interface Handing {
  readonly cluster: ClusterClient;
  /** Whether the cluster is reached over a link. */
  readonly overLink: boolean;
  readonly trace: TraceContext | null;
}

/** Submit, from a job as its child; where it is not known whether that was taken on, the failure says under which key it is not taken on twice. */
export async function send(
  io: Pick<CliIo, "env">,
  { cluster, overLink, trace }: Handing,
  submission: JobSubmissionInput,
): Promise<JobReceipt> {
  const metadata = { ...submission.metadata, ...surroundingJob(io, cluster.name) };
  try {
    return await cluster.submit({ ...submission, metadata }, trace);
  } catch (error) {
    if (!(error instanceof RelayError) || !UNKNOWN.has(error.code)) throw error;
    // What has not left this machine was not taken on.
    if (error.data["sent"] === false) throw error;
    const key = submission.idempotency_key!;
    const first = overLink && error.code === "link_down" ? `clio-relay connect ${cluster.name}, then ` : "";
    throw new RelayError(
      error.code,
      error.message,
      { ...error.data, idempotency_key: key },
      `${first}repeat it with --idempotency-key ${key}`,
    );
  }
}

/** With these it is not known whether the submission was taken on. */
const UNKNOWN: ReadonlySet<ErrorCode> = new Set(["link_down", "answer_malformed", "request_interrupted", "desktop_unavailable"]);

/** A key that nothing else has, so that a submission can be sent twice and taken once. */
export const freshKey = (): string => `cli_${crypto.randomUUID().replaceAll("-", "")}`;

/** The key of a pipeline's content: the same text with the same inputs is the same job. */
export function contentKey({ spec, used_artifact_refs = [] }: JobSubmissionInput): string {
  const text = "pipeline_yaml" in spec ? spec.pipeline_yaml! : "";
  const inputs = used_artifact_refs.map(({ artifact_id, sha256 }) => ({ artifact_id, sha256 }));
  const exclusive = "exclusive" in spec && spec.exclusive === true;
  return `pipeline_${sha256Hex(inputs.length === 0 && !exclusive ? text : canonicalJson({ text, inputs, exclusive }))}`;
}

/** How the answer to a submission is shown. */
export interface Shown {
  readonly wait: boolean;
  /** Said behind the notice that the job was there already. */
  readonly again: string;
}

/** Print what a submission brought about, remember it as the last job, and wait for its end where that is wanted. */
export async function showReceipt(
  { io, json, relay }: Pick<Call, "io" | "json" | "relay">,
  { cluster }: Handing,
  receipt: JobReceipt,
  { wait, again }: Shown,
): Promise<number> {
  await keepLastJob(io, relay.paths.lastJobFile, { cluster: cluster.name, job_id: receipt.job_id });
  try {
    if (!json) await io.stdout.write(`${receipt.job_id}\n`);
    else if (!wait) await printJson(io.stdout, receipt);
  } catch (error) {
    // Whoever does not get the id could not find the job.
    await io.stderr.write(`notice: ${receipt.job_id} was submitted\n`).catch(() => undefined);
    throw error;
  }
  if (receipt.existing) await io.stderr.write(`notice: existing job ${receipt.job_id}, ${receipt.state}${again}\n`);
  if (!wait) return EXIT.ok;
  const { waitExit, waitForJob } = await import("./wait.ts");
  return interruptible(
    io,
    () => `no longer waiting; the job goes on. Wait again with: clio-relay job wait ${receipt.job_id} --cluster ${cluster.name}`,
    async (signal) => {
      const result = await waitForJob(cluster, receipt.job_id, Number.POSITIVE_INFINITY, io, signal, true);
      if (json) await printJson(io.stdout, result);
      else if (result.outcome !== null) {
        await io.stderr.write(`${withReason(result.state, result.outcome.message)}\n`);
        await hintAtLog(io.stderr, cluster, result);
      }
      return waitExit(result);
    },
  );
}
