import { isId } from "../../domain/id.ts";
import type { JobSubmissionInput } from "../../domain/job.ts";
import { assignment, jsonObject, type Reader } from "../values.ts";

type Pin = NonNullable<JobSubmissionInput["used_artifact_refs"]>[number];

const PAIR = assignment("ARTIFACT=SHA256");

/** What a job consumes: `ARTIFACT=SHA256`, or the record's own form, which may also say how that is known. */
export const pinned: Reader<Pin> = {
  label: PAIR.label,
  form: "ARTIFACT=SHA256 with the id of an artifact and 64 hexadecimal digits, or the same as JSON: artifact_id, sha256 and, if need be, provenance",
  hint: (given) => (isId(given) ? `clio-relay job read-artifact ${given} says its SHA-256` : undefined),
  read(given) {
    const pair = PAIR.read(given);
    const pin = given.startsWith("{") ? jsonObject.read(given) : pair && { artifact_id: pair[0], sha256: pair[1] };
    return pin !== undefined && isPin(pin) ? pin : undefined;
  },
};

/** Whether it looks like one; what its provenance says is for the worker to judge. */
function isPin(given: Record<string, unknown>): given is Pin & Record<string, unknown> {
  const { artifact_id, sha256, provenance: _provenance, ...others } = given;
  return (
    Object.keys(others).length === 0 && /^[a-z0-9][a-z0-9_-]{0,127}$/.test(String(artifact_id)) && /^[0-9a-f]{64}$/.test(String(sha256))
  );
}
