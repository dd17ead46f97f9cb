import type { Artifact } from "../../domain/artifact.ts";
import type { UsedArtifactRef } from "../../domain/lineage.ts";
import type { Json, JsonObject } from "../../domain/primitives.ts";
import { workTitle } from "../../domain/title.ts";
import { attemptOf, endOf, type History, hostOf, startOf } from "./history.ts";

/** Records and terms of the relay as URNs; docs/lineage.md says what each term means. */
const PREFIXES = { relay: "urn:clio-relay:", term: "urn:clio-relay:term:" };

const named = (id: string): string => `relay:${id}`;
/** A value that is a name itself (PROV-JSON, section 2.2). */
const qualified = (name: string): Json => ({ $: name, type: "prov:QUALIFIED_NAME" });
const long = (value: number): Json => ({ $: String(value), type: "xsd:long" });

/** Attributes without those that nothing is known of. */
const known = (attributes: Readonly<Record<string, Json | undefined>>): JsonObject =>
  Object.fromEntries(Object.entries(attributes).filter((entry): entry is [string, Json] => entry[1] !== undefined && entry[1] !== null));

/**
 * What a job used, did and left, as PROV-JSON (W3C Member Submission of 24 April 2013). The job is the activity; artifacts are entities; what
 * was to be run is its plan, and clio-relay the agent that carried it out.
 */
export function provDocument(history: History): JsonObject {
  const { job, artifacts, inputs } = history;
  const activity = named(job.job_id);
  const agent = "relay:clio-relay";
  const plan = named(`${job.job_id}.plan`);
  const numbered = <T>(prefix: string, list: readonly T[], relation: (item: T) => JsonObject): JsonObject =>
    Object.fromEntries(list.map((item, at) => [`_:${prefix}${at + 1}`, relation(item)]));
  const generations = [
    ...artifacts.map((artifact) => ({ artifact, by: activity })),
    ...inputs.map(({ artifact }) => ({ artifact, by: named(artifact.job_id) })),
  ];
  const environment = environmentOf(history);
  return {
    prefix: PREFIXES,
    entity: {
      ...Object.fromEntries(
        [...inputs.map(({ artifact }) => artifact), ...artifacts].map((artifact) => [named(artifact.artifact_id), entityOf(artifact)]),
      ),
      [plan]: planOf(history),
      ...(environment === null ? {} : { [named(`${job.job_id}.environment`)]: environment }),
    },
    activity: {
      ...Object.fromEntries(inputs.map(({ artifact }) => [named(artifact.job_id), { "prov:type": qualified("term:Job") }])),
      [activity]: activityOf(history),
    },
    agent: {
      [agent]: {
        "prov:type": qualified("prov:SoftwareAgent"),
        "prov:label": "clio-relay",
        "term:cluster": job.cluster,
      },
    },
    used: {
      ...numbered("u", inputs, ({ edge }) => usageOf(edge, activity)),
      ...(environment === null
        ? {}
        : {
            "_:environment": { "prov:activity": activity, "prov:entity": named(`${job.job_id}.environment`), "prov:role": "environment" },
          }),
    },
    wasGeneratedBy: numbered("g", generations, ({ artifact, by }) =>
      known({
        "prov:entity": named(artifact.artifact_id),
        "prov:activity": by,
        "prov:time": artifact.created_at,
        "term:attempt": attemptOf(artifact) ?? undefined,
      }),
    ),
    wasAssociatedWith: { "_:a1": { "prov:activity": activity, "prov:agent": agent, "prov:plan": plan } },
  };
}

const entityOf = (artifact: Artifact): JsonObject => ({
  "prov:type": qualified("term:Artifact"),
  "prov:label": artifact.name,
  "prov:location": artifact.uri,
  "term:kind": artifact.kind,
  "term:sha256": artifact.sha256,
  "term:size_bytes": long(artifact.size_bytes),
});

const usageOf = ({ artifact_id, provenance, created_at }: UsedArtifactRef, activity: string): JsonObject =>
  known({
    "prov:activity": activity,
    "prov:entity": named(artifact_id),
    "prov:role": provenance?.arg ?? undefined,
    "term:pinned_at": { $: created_at, type: "xsd:dateTime" },
    "term:evidence": provenance?.evidence,
    "term:authority": provenance?.authority ?? undefined,
    "term:external_ref": provenance?.external_ref ?? undefined,
    "term:note": provenance?.note ?? undefined,
  });

function activityOf(history: History): JsonObject {
  const { job, transform } = history;
  return known({
    "prov:type": qualified("term:Job"),
    "prov:label": workTitle(job),
    "prov:startTime": startOf(history) ?? undefined,
    "prov:endTime": endOf(history) ?? undefined,
    "prov:location": hostOf(history) ?? undefined,
    "term:kind": job.kind,
    "term:state": job.state,
    "term:attempts": job.attempts,
    "term:submitted_at": { $: job.created_at, type: "xsd:dateTime" },
    "term:submission_digest": job.submission_digest,
    "term:outcome": job.outcome?.reason,
    "term:exit_code": job.outcome?.exit_code ?? undefined,
    "term:activity_id": transform?.activity_id,
    "term:mechanism": transform?.mechanism,
    "term:replay": transform?.replay,
    "term:replay_reason": transform?.replay_reason,
  });
}

/** What was to be run. Of the environment, the names only: values may be secrets of the user's. */
function planOf({ job: { kind, spec } }: History): JsonObject {
  const { env, ...rest } = spec as Readonly<Record<string, Json>>;
  return {
    "prov:type": qualified("prov:Plan"),
    "term:kind": kind,
    "term:spec": JSON.stringify({ ...rest, ...(env === undefined ? {} : { env_names: Object.keys(env as JsonObject).sort() }) }),
  };
}

function environmentOf({ transform }: History): JsonObject | null {
  if (transform === null) return null;
  const members = Object.entries(transform.environment).map(([name, value]) => [`term:${name}`, value ?? undefined] as const);
  return known({ "prov:type": qualified("term:Environment"), ...Object.fromEntries(members) });
}
