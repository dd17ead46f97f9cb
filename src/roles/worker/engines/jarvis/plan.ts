import path from "node:path";
import { executionIdOf } from "../../../../execution/jarvis/execution-id.ts";
import { pipelineRefused } from "../../../../execution/jarvis/pipeline-text.ts";
import type { JarvisProgram } from "../../../../execution/jarvis/program.ts";
import { ATTEMPT_MARK } from "../../../../execution/spool-records.ts";
import type { EngineAround, EnginePlan } from "../engine.ts";
import { pipelineMarker } from "./allocation.ts";
import type { JarvisInstallation } from "./installation.ts";
import runNamed from "./run-named.py" with { type: "text" };
import { checkInputs, type ReadyPipeline, readyPipeline } from "./source.ts";

/** The pipeline as it runs, in the attempt's directory. */
export const PIPELINE_FILE = "pipeline.yaml";
const RUN_NAMED_FILE = "run-named.py";

/** What an attempt runs, and what has to be known of it when it has ended. */
export interface JarvisPlan {
  readonly plan: EnginePlan;
  readonly text: string;
  readonly ready: ReadyPipeline;
}

/** @throws RelayError jarvis_submission_refused, engine_unavailable */
export async function jarvisPlan(
  around: EngineAround<"jarvis">,
  jarvis: JarvisInstallation,
  inputs: ReadonlyMap<string, string>,
): Promise<JarvisPlan> {
  const { directory, job } = around;
  const { spec } = job;
  const ready = await readyPipeline(spec, jarvis);
  const { pipeline } = ready;
  if (ready.own) checkInputs(ready, spec.inputs ?? {});
  for (const { name, packageId, setting } of ready.wanted) {
    const staged = inputs.get(name);
    if (staged !== undefined) pipeline.set(packageId, setting, staged);
  }
  const { scheduler } = pipeline;
  if (scheduler !== null && ready.named)
    throw pipelineRefused("scheduler", "a pipeline with a scheduler: block is run by its text, so that its job can be told from others");
  if (scheduler !== null) {
    pipeline.setScheduler("job_name", pipelineMarker(job.job_id, around.fence.attempt, scheduler.jobName));
    if (spec.exclusive === true) pipeline.setScheduler("exclusive", true);
    // Else SLURM starts a run once more whose node has failed, of which JARVIS knows only that it had begun.
    if (!scheduler.options.includes("--no-requeue")) pipeline.setScheduler("no_requeue", true);
  }
  const text = pipeline.toString();
  const program = await jarvis.program();
  const { pipeline_name: name } = spec;
  const argv =
    name !== undefined
      ? namedArgv(program, directory, name, executionIdOf(job))
      : textArgv(program, path.join(directory, PIPELINE_FILE), executionIdOf(job), scheduler !== null);
  const files = { [PIPELINE_FILE]: text, ...(name !== undefined ? { [RUN_NAMED_FILE]: runNamed } : {}) };
  const { workdir, timeout_seconds } = spec;
  // Else its output comes when it ends, and a run that is killed has had none. On its node it has to find itself.
  const env = {
    PYTHONUNBUFFERED: "1",
    ...(scheduler === null || program.place === null ? {} : { PYTHONPATH: program.place }),
    ...spec.env,
  };
  return { plan: { argv, files, env, workdir, login: false, timeout_seconds }, text, ready };
}

/** What is submitted must not carry the attempt's mark: it is not the shim's to end. */
const UNMARKED = ["/usr/bin/env", "-u", ATTEMPT_MARK];

const textArgv = ({ file }: JarvisProgram, pipeline: string, executionId: string, submitted: boolean): string[] => [
  ...(submitted ? [...UNMARKED, file, "ppl", "submit"] : [file, "ppl", "run", "yaml"]),
  ...[pipeline, "--execution-id", executionId, "+json"],
];

const namedArgv = ({ python, place }: JarvisProgram, directory: string, name: string, executionId: string): string[] => [
  ...python,
  path.join(directory, RUN_NAMED_FILE),
  ...[place ?? "", name, "run", executionId],
];
