import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../domain/errors.ts";
import type { Job } from "../../../domain/job.ts";
import { markerOf, type SchedulerRequest } from "../../../domain/scheduler.ts";
import { allocationScript } from "../../../execution/allocation-script.ts";
import { inputPath } from "../../../execution/input-place.ts";
import { FILES } from "../../../execution/spool-records.ts";
import type { BatchJob, SchedulerProvider } from "../../../scheduler/provider.ts";
import type { HostedAttempt } from "../attempt-host.ts";
import type { WorkerContext } from "../context.ts";
import { preparationOf, prepare } from "../prepare.ts";
import { keepExecutable } from "./executables.ts";

/** What a job asks of a scheduler. */
export function requestOf({ spec }: Job): SchedulerRequest {
  const request = "scheduler" in spec ? spec.scheduler : undefined;
  if (request === undefined) throw new RelayError("internal_error", "a job without a request to a scheduler has none");
  return request;
}

/** The text whose directives are the user's. */
export const scriptOf = ({ spec }: Job): string | null => ("script" in spec ? (spec.script ?? null) : null);

/**
 * Write down what the shim and the scheduler need. Directives that were left out are said.
 *
 * @throws RelayError job_submission_refused and others for what cannot be honoured
 */
export async function writeBatch(
  around: HostedAttempt,
  provider: SchedulerProvider,
): Promise<{ readonly marker: string; readonly workdir: string }> {
  const { context, job, fence, directory, engine } = around;
  const request = requestOf(job);
  const { text, name, removed, variables } = provider.script(request, scriptOf(job), allocationScript(context.command, directory));
  const { plan, inputs, segments } = await preparationOf(context, job, fence, engine);
  // Compute nodes do not see the cluster's spool where another one is shared with them.
  const copies = context.sharedSpoolDir === null ? new Map() : copiesOf(inputs, directory);
  const paths = { ...inputs, ...Object.fromEntries(copies) };
  prepare({ ...context, environment: elsewhere(context.environment) }, job, fence, directory, {
    plan: { ...plan, env: { ...variables, ...plan.env }, files: { ...plan.files, [FILES.batch]: text } },
    inputs: paths,
    segments,
  });
  for (const [variable, copy] of copies) await copyInput(inputs[variable] ?? "", copy);
  keepExecutable(context.coreDir, context.command[0] ?? "");
  if (removed.length > 0) {
    const message = `Left out of the directives, since the relay or the submission says it: ${removed.join(", ")}`.slice(0, 2_000);
    await around.notice({
      about: "directives",
      event: { event_type: "scheduler.directives_removed", level: "warning", message, payload: { removed: removed.slice(0, 100) } },
    });
  }
  return { marker: markerOf(job.job_id, fence.attempt, name), workdir: plan.workdir ?? context.homeDir };
}

/** The worker's variables without those that are about its host alone. */
const elsewhere = ({ HOSTNAME: _, XDG_RUNTIME_DIR: __, ...others }: WorkerContext["environment"]): WorkerContext["environment"] => others;

/** Where an attempt's own copies of its inputs lie, by variable. */
const copiesOf = (inputs: Readonly<Record<string, string>>, directory: string): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(inputs).map(([variable, file]) => [
      variable,
      inputPath(directory, path.basename(path.dirname(file)), path.basename(file)),
    ]),
  );

async function copyInput(source: string, target: string): Promise<void> {
  fs.mkdirSync(path.dirname(target), { recursive: true, mode: 0o700 });
  await fs.promises.copyFile(source, target, fs.constants.COPYFILE_FICLONE);
  fs.chmodSync(target, 0o400);
}

export const batchJob = ({ job, directory }: HostedAttempt, marker: string, workdir: string): BatchJob => ({
  request: requestOf(job),
  marker,
  script: path.join(directory, FILES.batch),
  output: path.join(directory, FILES.schedulerLog),
  workdir,
});
