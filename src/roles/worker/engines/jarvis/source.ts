import { isRelayError } from "../../../../domain/errors.ts";
import { LIMITS } from "../../../../domain/limits.ts";
import type { JarvisSpec } from "../../../../domain/specs.ts";
import { isBinding } from "../../../../execution/jarvis/inspection.ts";
import { PipelineText, pipelineRefused } from "../../../../execution/jarvis/pipeline-text.ts";
import { readRegular } from "../../../../lib/files/regular-file.ts";
import { checkWords } from "../../../../scheduler/slurm/options.ts";
import type { JarvisInstallation } from "./installation.ts";

/** A pipeline that is ready to be run, and what JARVIS says of what it names. */
export interface ReadyPipeline {
  readonly pipeline: PipelineText;
  /** Whether the text is the submitter's; else it is what JARVIS, or a file of the cluster's, has at the moment. */
  readonly own: boolean;
  /** Whether JARVIS keeps it. */
  readonly named: boolean;
  /** Settings that are files of the submitter's, as `PACKAGE.SETTING`, and have a value. */
  readonly wanted: readonly FileSetting[];
  /** Packages that do not report exit codes. */
  readonly packageNames: ReadonlyMap<string, string>;
  readonly sharedDir: string;
}

/** A setting that a package declares to be a file of the submitter's. */
export interface FileSetting {
  readonly name: string;
  readonly packageId: string;
  readonly setting: string;
  /** What the pipeline says; empty where it says nothing. */
  readonly value: string;
}

/** The text of a pipeline, wherever it lies. @throws RelayError jarvis_submission_refused, engine_unavailable */
async function textOf(spec: JarvisSpec, jarvis: JarvisInstallation): Promise<string> {
  if (spec.pipeline_yaml !== undefined) return spec.pipeline_yaml;
  if (spec.pipeline_path !== undefined) return fileText(spec.pipeline_path);
  const name = spec.pipeline_name!;
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(name)) throw pipelineRefused("pipeline", "JARVIS has no pipeline of such a name");
  const { pipeline } = await jarvis.inspect([], name);
  if (pipeline == null)
    throw pipelineRefused("pipeline_missing", `JARVIS has no pipeline ${name}`, { pipeline: name }, "on the cluster: jarvis ppl list");
  return pipeline;
}

function fileText(file: string): string {
  let read: ReturnType<typeof readRegular>;
  try {
    read = readRegular(file, LIMITS.pipelineBytes);
  } catch (error) {
    throw pipelineRefused("pipeline_missing", `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (typeof read === "string")
    throw pipelineRefused("pipeline_missing", `${file} is no regular file of at most ${LIMITS.pipelineBytes} bytes`);
  return read.text;
}

/** Read a pipeline, and look whether JARVIS has what it names. @throws RelayError jarvis_submission_refused, engine_unavailable */
export async function readyPipeline(spec: JarvisSpec, jarvis: JarvisInstallation): Promise<ReadyPipeline> {
  const pipeline = new PipelineText(await textOf(spec, jarvis));
  if (spec.exclusive === true && pipeline.scheduler === null)
    throw pipelineRefused("scheduler", "--exclusive asks a scheduler for nodes, and the pipeline has no scheduler: block");
  refuseOptions(pipeline.scheduler?.options ?? []);
  const { packages, shared_dir: sharedDir } = await jarvis.inspect(pipeline.packages.map(({ type }) => type));
  const packageNames = new Map<string, string>();
  const wanted: FileSetting[] = [];
  for (const { id, type, settings } of pipeline.packages) {
    const known = packages[type];
    if (known === undefined) throw pipelineRefused("package_missing", `JARVIS says nothing of ${type}`, { package: type });
    if (known.problem !== null) throw pipelineRefused(known.problem, `package ${id}: ${known.said}`, { package: type });
    packageNames.set(id, known.name);
    for (const [setting, { binding, default: fallback }] of Object.entries(known.bound)) {
      if (!isBinding(binding))
        throw pipelineRefused("input", `the setting ${setting} of ${type} is a kind of file that this version does not stage`, {
          package: type,
          setting,
        });
      const value = settings[setting] ?? fallback;
      wanted.push({ name: `${id}.${setting}`, packageId: id, setting, value: typeof value === "string" ? value : JSON.stringify(value) });
    }
  }
  return { pipeline, own: spec.pipeline_yaml !== undefined, named: spec.pipeline_name !== undefined, wanted, packageNames, sharedDir };
}

/** An array would be several runs of one execution, and under another name the run could not be found again. */
function refuseOptions(words: readonly string[]): void {
  try {
    checkWords(words);
  } catch (error) {
    throw isRelayError(error, "job_submission_refused") ? pipelineRefused("scheduler", `scheduler: ${error.message}`) : error;
  }
}

/** @throws RelayError jarvis_submission_refused where inputs and declared settings do not belong together */
export function checkInputs({ wanted }: ReadyPipeline, inputs: Readonly<Record<string, string>>): void {
  const declared = new Set(wanted.map(({ name }) => name));
  for (const name of Object.keys(inputs))
    if (!declared.has(name)) {
      const there =
        declared.size === 0
          ? "no setting of this pipeline is declared to be a file"
          : `those that are: ${[...declared].slice(0, 20).join(", ")}`;
      throw pipelineRefused("input", `${name} is not declared to be a file of the submitter's; ${there}`, { input: name });
    }
  for (const { name, value } of wanted)
    if (value !== "" && !Object.hasOwn(inputs, name))
      throw pipelineRefused(
        "input",
        `${name} is a file of the submitter's, and ${value.slice(0, 200)} was not staged`,
        { input: name },
        `--input ${name}=FILE`,
      );
}
