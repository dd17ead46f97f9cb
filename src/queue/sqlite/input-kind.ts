import { RelayError } from "../../domain/errors.ts";
import type { JobSubmission } from "../../domain/job.ts";
import { missingArtifact, type ResolvedUse } from "./lineage.ts";

/**
 * @param uses what the submission pins
 * @throws RelayError job_submission_refused for an input that is another kind of artifact; artifact_not_found for one that is not pinned
 */
export function checkInputs({ spec }: JobSubmission, uses: readonly ResolvedUse[]): void {
  const inputs = "inputs" in spec ? spec.inputs : undefined;
  if (inputs === undefined) return;
  const kinds = new Map(uses.map(({ artifact_id, kind }) => [artifact_id, kind]));
  for (const [name, artifactId] of Object.entries(inputs)) {
    const found = kinds.get(artifactId);
    if (found === undefined) throw missingArtifact(artifactId);
    if (found === "input") continue;
    throw new RelayError("job_submission_refused", `the input ${name} is an artifact of kind ${found}`, {
      cause: "input_kind",
      input: name,
      artifact_id: artifactId,
      kind: found,
    });
  }
}
