import type { JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";

export type Pins = NonNullable<JobSubmissionInput["used_artifact_refs"]>;

/** A pin for each artifact, with the digest of the bytes that were read here. It says what it is for as long as all of them together may be that large. */
export function pinsOf(uses: readonly { readonly name: string; readonly artifact_id: string; readonly sha256: string }[]): Pins {
  const pins = new Map<string, Pins[number]>();
  for (const { name, artifact_id, sha256 } of uses) {
    const provenance = { schema_version: "clio-relay.artifact-use.v1", evidence: "schema-arg", arg: name } as const;
    if (!pins.has(artifact_id)) pins.set(artifact_id, { artifact_id, sha256, provenance });
  }
  const full = [...pins.values()];
  // What is left out counts as null, with its name.
  const bytes = JSON.stringify(full).length + full.length * '"authority":null,"external_ref":null,"note":null,'.length;
  return bytes <= LIMITS.artifactUsesBytes ? full : full.map(({ artifact_id, sha256 }) => ({ artifact_id, sha256 }));
}
