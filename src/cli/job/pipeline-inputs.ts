import type { ClusterClient } from "../../api/client.ts";
import { settingFiles } from "../../api/staging/setting-files.ts";
import { RelayError } from "../../domain/errors.ts";
import type { JobSubmissionInput } from "../../domain/job.ts";
import type { GivenInputs } from "./staged-inputs.ts";

/**
 * The files that go with a pipeline: those that `--input` names, and those that settings name which their packages declare to be files of the submitter's. Each
 * under the name that the job has it by, `PACKAGE.SETTING`.
 *
 * @throws RelayError usage for a name that is no such setting, or one of several
 */
export async function inputsOfPipeline(cluster: ClusterClient, spec: JobSubmissionInput["spec"], given: GivenInputs): Promise<GivenInputs> {
  const text = "pipeline_yaml" in spec ? spec.pipeline_yaml : undefined;
  if (text === undefined) return given;
  const { settings } = await cluster.pipelineInputs({ pipeline_yaml: text });
  const plain = given.map(([name, file]) => [name, file] as const);
  const named = settingFiles(settings, plain, (name, what) => new RelayError("usage", `--input ${name}: ${what}`));
  for (const { name, value } of settings) if (value !== "" && !named.has(name)) named.set(name, value);
  return [...named];
}
