import { settingFiles } from "../../api/staging/setting-files.ts";
import { RelayError } from "../../domain/errors.ts";
import type { PipelineInputs } from "../../domain/pipeline.ts";
import { asked } from "../asked.ts";
import { type LocalFiles, mayBeLocal, stagedFiles } from "../local-files.ts";
import { type Admitted, submit } from "../submit.ts";
import type { ToolCall } from "../tool.ts";

/** A run of a pipeline that the cluster has, by the worker. */
export interface NamedRun {
  readonly cluster: string;
  readonly pipeline_id: string;
  readonly exclusive?: boolean | undefined;
  /** Settings that are files of this machine, as `PACKAGE.SETTING` or `SETTING`, with their paths. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly idempotency_key?: string | undefined;
}

/**
 * Submit a run. Files that settings name which their packages declare to be files of the submitter's come along, in the version that they have now; then what runs is the pipeline's text with
 * their paths on the cluster.
 *
 * @throws RelayError as a submission; what bringing files along fails with
 */
export async function runNamed({ cluster, pipeline_id, exclusive, inputs, idempotency_key }: NamedRun, call: ToolCall): Promise<Admitted> {
  const place = await call.clusters.named(cluster, call.signal);
  const pipeline = await asked(`the worker of ${cluster}`, call.signal, (bounded) =>
    place.client.pipelineInputs({ pipeline_name: pipeline_id }, bounded),
  );
  const files = call.files ?? null;
  const given = filesOf(pipeline.settings, inputs, files);
  const shared = { ...(exclusive === undefined ? {} : { exclusive }) };
  const wanted = { cluster, kind: "jarvis" as const, idempotency_key };
  if (given.length === 0)
    return submit("jarvis_run", { ...wanted, spec: { pipeline_name: pipeline_id, ...shared }, used_artifact_refs: [] }, call);
  const staged = await stagedFiles(files, place, given, call.signal);
  const spec = { pipeline_yaml: pipeline.pipeline_yaml, inputs: staged.inputs, ...shared };
  return submit("jarvis_run", { ...wanted, spec, used_artifact_refs: staged.pins }, call);
}

/** The files that go with a run: those that are given, and those that settings name. */
function filesOf(
  settings: PipelineInputs["settings"],
  inputs: Readonly<Record<string, string>>,
  files: LocalFiles | null,
): [name: string, file: string][] {
  const refused = (name: string, what: string) => new RelayError("request_validation_failed", `inputs.${name}: ${what}`);
  const named = settingFiles(settings, Object.entries(inputs), refused);
  for (const { name, value } of settings) if (value !== "" && mayBeLocal(files, value) && !named.has(name)) named.set(name, value);
  return [...named];
}
