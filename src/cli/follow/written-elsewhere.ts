import type { ClusterClient } from "../../api/client.ts";
import type { JobState } from "../../domain/job.ts";
import type { LogStream } from "../../domain/log.ts";
import type { JobStatus } from "../../domain/views.ts";
import type { Output } from "../io.ts";
import { bytesText } from "../print/quantities.ts";

/** The command line that prints a log of a job. */
const readLog = (cluster: string, jobId: string, stream: LogStream): string =>
  `clio-relay job read-log ${jobId} --cluster ${cluster}${stream === "stdout" ? "" : ` --stream ${stream}`}`;

type Logs = JobStatus["logs"];

const written = (logs: Logs, stream: LogStream): number => logs.find((log) => log.stream === stream)?.size_bytes ?? 0;

/** The logs of a job; none where the worker cannot be asked. */
export const logsOf = (cluster: ClusterClient, jobId: string): Promise<Logs> =>
  cluster.status(jobId).then(
    ({ logs }) => logs,
    () => [],
  );

/**
 * Of a job that failed, say on standard error which command prints what it wrote: to standard error, where programs say what went wrong, else to standard output. Nothing
 * is said where it wrote nothing, or where the worker cannot be asked.
 */
export async function hintAtLog(
  stderr: Pick<Output, "write">,
  cluster: ClusterClient,
  { job_id, state }: { readonly job_id: string; readonly state: JobState },
): Promise<void> {
  if (state !== "failed") return;
  const logs = await logsOf(cluster, job_id);
  const stream = (["stderr", "stdout"] as const).find((one) => written(logs, one) > 0);
  if (stream !== undefined) await stderr.write(`hint: ${readLog(cluster.name, job_id, stream)}\n`);
}

/** Where a job wrote nothing to standard output, but to standard error: say that, and which command prints it. */
export async function noteOther(
  stderr: Pick<Output, "write">,
  cluster: { readonly name: string },
  { jobId, stream, logs }: { readonly jobId: string; readonly stream: LogStream; readonly logs: Logs },
): Promise<void> {
  const other = written(logs, "stderr");
  if (stream !== "stdout" || written(logs, "stdout") > 0 || other === 0) return;
  await stderr.write(`notice: nothing was written to stdout; ${readLog(cluster.name, jobId, "stderr")} prints ${bytesText(other)}\n`);
}
