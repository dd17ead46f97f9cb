import type { ClusterClient } from "../../api/client.ts";
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
  const { settings } = await cluster.pipelineInputs(text);
  const named = new Map<string, string>();
  for (const [name, file] of given) {
    const matching = settings.filter((one) => one.name === name || one.setting === name);
    const exact = matching.find((one) => one.name === name) ?? matching[0];
    const names = settings.map((one) => one.name).join(", ");
    if (exact === undefined) {
      const there = names === "" ? "no setting of this pipeline is declared to be a file" : `those that are: ${names}`;
      throw new RelayError("usage", `--input ${name}: ${there}`);
    }
    if (matching.length > 1 && exact.name !== name)
      throw new RelayError(
        "usage",
        `--input ${name}: several packages have a setting of that name: ${matching.map((one) => one.name).join(", ")}`,
      );
    if (named.has(exact.name)) throw new RelayError("usage", `--input ${exact.name} is given twice`);
    named.set(exact.name, file);
  }
  for (const { name, value } of settings) if (value !== "" && !named.has(name)) named.set(name, value);
  return [...named];
}
