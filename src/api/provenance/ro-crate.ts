import type { Artifact } from "../../domain/artifact.ts";
import type { Job } from "../../domain/job.ts";
import type { Json, JsonObject } from "../../domain/primitives.ts";
import { givenTitle, workTitle } from "../../domain/title.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { type CrateFile, formatOf, METADATA_FILE, PROV_FILE } from "./crate-files.ts";
import { endOf, type History, hostOf, startOf } from "./history.ts";

const SPECIFICATION = "https://w3id.org/ro/crate/1.1";
const PROFILE = "https://w3id.org/ro/wfrun/process/0.5";
/** Terms of schema.org, and those that runs add (sha256 is one of these). */
const CONTEXT = ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"];

/** What only people can say of a crate. */
export interface CrateWords {
  /** SPDX identifier, URL or sentence; null where nobody said. */
  readonly license: string | null;
  /** Name, or a URL such as an ORCID, of whoever had the job run; null where nobody said. */
  readonly author: string | null;
}

const reference = (id: string): JsonObject => ({ "@id": id });
/** One is not a list of one, as the flattened and compacted form has it. */
const references = (ids: readonly string[]): Json => (ids.length === 1 ? reference(ids[0]!) : ids.map(reference));

/** A path as the URI that it is in a crate (RFC 3986, section 4.2). */
const uriOf = (path: string): string => path.split("/").map(encodeURIComponent).join("/");

/** ISO 8601 with an offset in digits, which every reader takes. */
const moment = (timestamp: string): string => timestamp.replace(/Z$/, "+00:00");

/** The script of a job that has one, as a file of the crate. */
export function scriptOf(job: Job): { readonly path: string; readonly text: string } | null {
  if (job.kind !== "command" || job.spec.script === undefined) return null;
  const given = job.metadata["script_name"];
  const name = typeof given === "string" && /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,200}$/u.test(given) && !given.endsWith(".") ? given : "script";
  return { path: `script/${name}`, text: job.spec.script.toWellFormed() };
}

/**
 * The description of a crate about one job, which has ended: RO-Crate 1.1 and the profile Process Run Crate 0.5.
 *
 * @param published when the crate was made, as records have times
 */
export function crateMetadata(history: History, files: readonly CrateFile[], words: CrateWords, published: string): string {
  const { job } = history;
  const actionId = `#${job.job_id}`;
  const program = programOf(job);
  const described = files.map((file) => ({
    ...file,
    id: file.path === null ? `urn:clio-relay:${file.artifact.artifact_id}` : uriOf(file.path),
  }));
  const author = words.author === null ? null : authorOf(words.author);
  const license = licenseOf(words.license);
  const parts = [
    ...described.map(({ id }) => id),
    ...(program["@type"] === "SoftwareApplication" ? [] : [String(program["@id"])]),
    PROV_FILE,
  ];
  const graph: JsonObject[] = [
    { "@id": METADATA_FILE, "@type": "CreativeWork", conformsTo: reference(SPECIFICATION), about: reference("./") },
    {
      "@id": "./",
      "@type": "Dataset",
      name: givenTitle(job) ?? workTitle(job),
      description: `What the job ${job.job_id} used and left on the cluster ${job.cluster}, as clio-relay has it on record.`,
      datePublished: moment(published),
      identifier: `urn:clio-relay:${job.job_id}`,
      license: license.value,
      conformsTo: reference(PROFILE),
      hasPart: references(parts),
      mentions: reference(actionId),
      ...(author === null ? {} : { author: reference(String(author["@id"])) }),
    },
    { "@id": PROFILE, "@type": "CreativeWork", name: "Process Run Crate", version: "0.5" },
    program,
    actionOf(history, actionId, String(program["@id"]), described, author),
    ...described.map(({ artifact, path, id }) => fileOf(artifact, path, id)),
    {
      "@id": PROV_FILE,
      "@type": "File",
      name: "The same history as PROV-JSON",
      encodingFormat: "application/json",
      about: reference(actionId),
    },
    ...(author === null ? [] : [author]),
    ...(license.entity === null ? [] : [license.entity]),
  ];
  return `${JSON.stringify({ "@context": CONTEXT, "@graph": graph }, null, 2)}\n`;
}

function actionOf(
  history: History,
  id: string,
  instrument: string,
  files: readonly (CrateFile & { readonly id: string })[],
  author: JsonObject | null,
): JsonObject {
  const { job } = history;
  const idsOf = (role: CrateFile["role"]): string[] => files.filter((file) => file.role === role).map((file) => file.id);
  const [used, made] = [idsOf("object"), idsOf("result")];
  const [start, end, host] = [startOf(history), endOf(history), hostOf(history)];
  return {
    "@id": id,
    "@type": made.length === 0 ? "ActivateAction" : "CreateAction",
    name: givenTitle(job) ?? `Job ${job.job_id}`,
    description: `${workTitle(job)}${host === null ? "" : `, on ${host}`}`,
    ...(start === null ? {} : { startTime: moment(start) }),
    ...(end === null ? {} : { endTime: moment(end) }),
    instrument: reference(instrument),
    ...(used.length === 0 ? {} : { object: references(used) }),
    ...(made.length === 0 ? {} : { result: references(made) }),
    ...(author === null ? {} : { agent: reference(String(author["@id"])) }),
    ...(job.state === "succeeded"
      ? { actionStatus: "http://schema.org/CompletedActionStatus" }
      : { actionStatus: "http://schema.org/FailedActionStatus", error: job.outcome?.message ?? job.state }),
  };
}

function programOf(job: Job): JsonObject {
  const script = scriptOf(job);
  if (script !== null) {
    const { path, text } = script;
    return {
      "@id": uriOf(path),
      "@type": ["File", "SoftwareSourceCode"],
      name: path.slice("script/".length),
      version: `sha256:${sha256Hex(text)}`,
      encodingFormat: "text/plain",
      contentSize: String(Buffer.byteLength(text)),
    };
  }
  return { "@id": "#program", "@type": "SoftwareApplication", name: programName(job) };
}

function programName(job: Job): string {
  if (job.kind !== "command") return `${job.kind}: ${workTitle(job)}`;
  return job.spec.argv?.[0]?.split("/").at(-1)?.toWellFormed() || "program";
}

const fileOf = (artifact: Artifact, path: string | null, id: string): JsonObject => ({
  "@id": id,
  "@type": "File",
  name: artifact.name.toWellFormed(),
  encodingFormat: formatOf(artifact),
  contentSize: String(artifact.size_bytes),
  sha256: artifact.sha256,
  dateCreated: moment(artifact.created_at),
  ...(path === null
    ? { description: "Not part of this crate: named by size and SHA-256." }
    : { identifier: `urn:clio-relay:${artifact.artifact_id}` }),
  ...(path === null && artifact.uri.startsWith("file:") ? { contentUrl: artifact.uri } : {}),
  ...(path === null || path.endsWith(`/${artifact.name}`) ? {} : { alternateName: artifact.name.toWellFormed() }),
});

const isUrl = (text: string): boolean => /^https?:\/\/\S+$/.test(text) && URL.canParse(text);

const authorOf = (author: string): JsonObject => ({ "@id": isUrl(author) ? author : "#author", "@type": "Person", name: author });

/** A crate has to say something about its license; what nobody said is not made up. */
function licenseOf(license: string | null): { readonly value: Json; readonly entity: JsonObject | null } {
  if (license === null) return { value: "Nobody has stated a license. Ask those whose files these are.", entity: null };
  const spdx = /^[A-Za-z0-9][A-Za-z0-9.+-]*$/.test(license);
  if (!spdx && !isUrl(license)) return { value: license, entity: null };
  const id = spdx ? `https://spdx.org/licenses/${license}` : license;
  return { value: reference(id), entity: { "@id": id, "@type": "CreativeWork", name: license, description: `License ${license}` } };
}
