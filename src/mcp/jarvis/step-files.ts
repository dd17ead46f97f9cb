import { RelayError } from "../../domain/errors.ts";
import type { PipelineInputs, PipelineQuestion } from "../../domain/pipeline.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";
import { mayBeLocal, type Staged, stagedFiles } from "../local-files.ts";
import type { ToolCall } from "../tool.ts";

/** A step's settings as they are to be on the cluster. */
export interface StepSettings {
  readonly config: Readonly<Record<string, unknown>>;
  readonly pins: Staged["pins"];
}

/**
 * Bring the files along that settings of a step name which its package declares to be files of the submitter's: each such setting gets the path of the copy on the cluster.
 *
 * @param about what the worker is asked about: the pipeline that has the step, or one with nothing but the package
 * @param step which package of that is meant; null: the only one
 * @throws RelayError as stagedFiles; version_mismatch where the worker does not say where copies are
 */
export async function stepSettings(
  place: Place,
  about: PipelineQuestion,
  step: string | null,
  config: Readonly<Record<string, unknown>>,
  call: ToolCall,
): Promise<StepSettings> {
  const unchanged = { config, pins: [] };
  const texts = Object.entries(config).filter((one): one is [string, string] => typeof one[1] === "string" && one[1] !== "");
  if (texts.length === 0) return unchanged;
  const settings = await declared(place, about, call);
  const files = call.files ?? null;
  const given = texts.filter(
    ([name, file]) =>
      mayBeLocal(files, file) && settings.some(({ setting, package_id }) => setting === name && (step === null || package_id === step)),
  );
  if (given.length === 0) return unchanged;
  const { pins, paths } = await stagedFiles(files, place, given, call.signal);
  const copies = given.map(([name]): [string, string] => {
    const copy = paths.get(name);
    if (copy === undefined) throw tooOld(place);
    return [name, copy];
  });
  return { config: { ...config, ...Object.fromEntries(copies) }, pins };
}

/** Settings that are files of the submitter's; none, where the worker has no JARVIS-CD of its own to look at packages with, or does not know the pipeline. */
async function declared(place: Place, about: PipelineQuestion, { signal }: ToolCall): Promise<PipelineInputs["settings"]> {
  try {
    const ask = (bounded: AbortSignal) => place.client.pipelineInputs(about, bounded);
    return (await asked(`the worker of ${place.entry.name}`, signal, ask)).settings;
  } catch (error) {
    if (!(error instanceof RelayError) || !UNKNOWN.has(error.code)) throw error;
    return [];
  }
}

const UNKNOWN: ReadonlySet<string> = new Set(["engine_unavailable", "jarvis_submission_refused", "request_validation_failed"]);

const tooOld = ({ entry: { name } }: Place): RelayError =>
  new RelayError(
    "version_mismatch",
    `the worker of ${name} is of a version that does not say where copies of files are`,
    { cluster: name },
    `clio-relay cluster bootstrap ${name} brings the one of this side`,
  );
