import { RelayError } from "../../domain/errors.ts";
import type { JobSubmission } from "../../domain/job.ts";
import type { Reading } from "./access.ts";
import { artifact } from "./artifacts.ts";

/** @throws RelayError job_submission_refused for an input of a job that is another kind of artifact; artifact_not_found */
export function checkInputs(r: Reading, { kind, spec }: JobSubmission): void {
  if (kind !== "command" || spec.inputs === undefined) return;
  for (const [name, artifactId] of Object.entries(spec.inputs)) {
    const found = artifact(r, artifactId).kind;
    if (found === "input") continue;
    throw new RelayError("job_submission_refused", `the input ${name} is an artifact of kind ${found}`, {
      cause: "input_kind",
      input: name,
      artifact_id: artifactId,
      kind: found,
    });
  }
}
