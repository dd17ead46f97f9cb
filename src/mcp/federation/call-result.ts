import * as v from "valibot";
import type { ClusterClient } from "../../api/client.ts";
import type { Artifact } from "../../domain/artifact.ts";
import type { Attempt } from "../../domain/attempt.ts";
import { RelayError } from "../../domain/errors.ts";
import { MCP_FAILURES, MCP_LIMITS, type McpFailure, McpResult } from "../../domain/mcp-call.ts";
import { ByteCount, Id, jsonBytes, Sha256 } from "../../domain/primitives.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { jsonExcess } from "../../lib/text/json-excess.ts";
import { asked } from "../asked.ts";
import type { Place } from "../clusters.ts";
import type { Content } from "../tool.ts";
import { blocksOf, textOf } from "./content-blocks.ts";

/** What the document of a call takes at most: a list of tools stands in it whole. */
const DOCUMENT_BYTES = MCP_LIMITS.responseBytes + 1024 * 1024;
/** A message of the server's has 256 levels at most. */
const DOCUMENT_BOUNDS = { depth: 300, values: Number.MAX_SAFE_INTEGER };
/** Artifacts of one call that are looked through. */
const ARTIFACTS = 500;

/** An error that is handed on whole takes this at most. */
const ERROR_BYTES = 32 * 1024;
const INTERNAL_ERROR = -32603;

const DELIVERY = "clio-relay.mcp-result-delivery.v1";

/** A call's document with the artifact that it is. */
export interface CallDocument {
  readonly artifact: Artifact;
  readonly document: McpResult;
  /** What else the job left. */
  readonly others: readonly Artifact[];
}

/**
 * What an mcp_call has left.
 *
 * @returns null where there is none: the call was not begun
 * @throws RelayError answer_malformed where it is not what it is said to be, and as any operation
 */
export async function callDocument(client: ClusterClient, jobId: string, signal: AbortSignal): Promise<CallDocument | null> {
  const { artifacts } = await client.artifacts(jobId, { limit: ARTIFACTS, signal });
  const artifact = artifacts.findLast(({ kind }) => kind === "mcp_result");
  if (artifact === undefined) return null;
  const refuse = (what: string): RelayError =>
    new RelayError("answer_malformed", `the result of ${jobId} ${what}`, { job_id: jobId, artifact_id: artifact.artifact_id });
  if (artifact.size_bytes > DOCUMENT_BYTES) throw refuse(`takes ${artifact.size_bytes} bytes`);
  const response = await client.artifactContent(artifact.artifact_id, { signal });
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (sha256Hex(bytes) !== artifact.sha256) throw refuse("has another digest than was recorded");
  const excess = jsonExcess(bytes, DOCUMENT_BOUNDS);
  if (excess !== null) throw refuse(`cannot be read: ${excess}`);
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw refuse("is no JSON");
  }
  const read = v.safeParse(McpResult, data, { abortEarly: true });
  if (!read.success) throw refuse(`does not fit: ${v.getDotPath(read.issues[0]) ?? "the document"}`);
  return { artifact, document: read.output, others: artifacts.filter((one) => one !== artifact) };
}

const Json = v.record(v.string(), v.unknown());
/** What came of a call, as agents see it. */
const CallResultView = v.object({
  schema_version: v.literal(DELIVERY),
  /** `inline`: it is here. `artifact`: it is too long for here. `error`, `failure`: the server, or what kept it, says why. */
  delivery: v.picklist(["inline", "artifact", "error", "failure", "none"]),
  is_error: v.boolean(),
  /** As the server gave it: data, and no instruction. */
  content: v.array(Json),
  structured_result: v.unknown(),
  size_bytes: v.nullable(ByteCount),
  artifact: v.nullable(v.object({ artifact_id: Id, name: v.string(), size_bytes: ByteCount, sha256: Sha256 })),
  preview: v.nullable(v.string()),
  error: v.nullable(v.object({ code: v.number(), message: v.string(), data: v.optional(v.unknown()) })),
  failure: v.nullable(v.object({ reason: v.picklist(MCP_FAILURES), message: v.string() })),
  /** Whether the tool may have had its effect. */
  may_have_run: v.boolean(),
  note: v.nullable(v.string()),
});
export type CallResultView = v.InferOutput<typeof CallResultView>;

/** The same for the schemas of tools: many have it, and an agent's context holds each. */
export const MCP_RESULT = v.pipe(
  v.custom<CallResultView>((value) => v.is(CallResultView, value)),
  v.description(
    "of a call of an MCP server that has ended: delivery, is_error, content and structured_result as the server gave them, artifact and preview of a longer one, error, failure, may_have_run, note",
  ),
);

const NOTHING: CallResultView = {
  schema_version: DELIVERY,
  delivery: "none",
  is_error: true,
  content: [],
  structured_result: null,
  size_bytes: null,
  artifact: null,
  preview: null,
  error: null,
  failure: null,
  may_have_run: false,
  note: "the call was not begun: the job's outcome says why",
};

/** The same where the call was begun, and whoever made it was killed before it could say more. */
const LOST: CallResultView = {
  ...NOTHING,
  may_have_run: true,
  note: "the call was begun and left no result: the job's outcome says how it ended. The tool may have begun before that; look at its effect before it is called again",
};

/** What came of the call of a job that has ended. */
export async function callResult({ client, entry }: Place, jobId: string, signal: AbortSignal): Promise<CallResultView> {
  const worker = `the worker of ${entry.name}`;
  const read = await asked(worker, signal, (bounded) => callDocument(client, jobId, bounded));
  if (read !== null) return viewOf(read);
  const { attempt } = await asked(worker, signal, (bounded) => client.status(jobId, bounded));
  return withoutDocument(attempt);
}

/** What is known of a call that has left nothing, by the last attempt of its job. */
export function withoutDocument(attempt: Pick<Attempt, "started_at" | "outcome"> | null): CallResultView {
  const begun = attempt !== null && (attempt.started_at !== null || attempt.outcome?.reason === "outcome_unknown");
  return begun ? LOST : NOTHING;
}

/** Failures of a server that ran, and may have said why. */
const RAN: ReadonlySet<McpFailure> = new Set(["server_exited", "handshake_failed", "protocol_violation", "interrupted"]);

export function viewOf({ document: { answer, sent }, others }: Pick<CallDocument, "document" | "others">): CallResultView {
  const view = { ...NOTHING, may_have_run: sent, note: null };
  if (answer.kind === "error") return { ...view, delivery: "error", ...shownError(answer.error) };
  if (answer.kind === "failure") {
    const notes = [
      sent ? "the tool may have begun before that; look at its effect before it is called again" : null,
      RAN.has(answer.reason) ? "what the server said besides is its standard error: relay_read_job_log with stream stderr" : null,
    ].filter((one) => one !== null);
    return { ...view, delivery: "failure", failure: { reason: answer.reason, message: answer.message }, note: notes.join("; ") || null };
  }
  if (answer.kind === "tools") {
    const note = `${answer.tools.length} tools on ${answer.pages} pages; clio-relay remote-mcp refresh takes them on`;
    return { ...view, delivery: "none", is_error: false, note };
  }
  const { is_error, result, size_bytes, content, preview } = answer;
  if (result !== null) {
    const shown = inlineOf(result);
    const notes = [shown.note, hasRounded(shown.structured_result) ? ROUNDED : null].filter((one) => one !== null);
    return { ...view, delivery: "inline", is_error, size_bytes, ...shown, note: notes.join("; ") || null };
  }
  const file = others.find(({ kind, name, sha256 }) => kind === "execution_output" && name === content?.name && sha256 === content.sha256);
  return {
    ...view,
    delivery: "artifact",
    is_error,
    size_bytes,
    artifact:
      file === undefined ? null : { artifact_id: file.artifact_id, name: file.name, size_bytes: file.size_bytes, sha256: file.sha256 },
    preview,
    note:
      file === undefined
        ? "the tool has run, and its result, which was too long for here, is not among what the job left"
        : `the tool has run, and its whole result is the artifact: relay_read_artifact reads it by pieces. To call again would run it again`,
  };
}

const ROUNDED =
  "structured_result has numbers of more than 53 bits, which may be rounded; what content has as text is as the server wrote it";

/** Whether a number is one that several integers become. */
const hasRounded = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : value !== null && typeof value === "object" && Object.values(value).some(hasRounded);

/** What a result has in it; members that the protocol has no place for are a block of their own. */
function inlineOf(result: Readonly<Record<string, unknown>>): Pick<CallResultView, "content" | "structured_result" | "note"> {
  const { content: given, structuredContent: structured_result = null, isError: _said, ...others } = result;
  const content = blocksOf(given);
  const names = Object.keys(others);
  if (names.length === 0) return { content, structured_result, note: null };
  if (content.length === 0 && structured_result !== null) content.push(textOf(JSON.stringify(structured_result)));
  const note = `the result has further members, in its last block: ${names.join(", ").slice(0, 200)}`;
  return { content: [...content, textOf(JSON.stringify(others))], structured_result, note };
}

/** An error as its server gave it; of a long one the beginning, which says so. */
function shownError(error: {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}): Pick<CallResultView, "error" | "note"> {
  const bytes = jsonBytes(error);
  // JSON-RPC has integers, and clients refuse what is none.
  const code = Number.isSafeInteger(error.code) ? error.code : INTERNAL_ERROR;
  if (bytes <= ERROR_BYTES) return { error: { ...error, code }, note: code === error.code ? null : `its code was ${error.code}` };
  const message = error.message.slice(0, MCP_LIMITS.previewLength).toWellFormed();
  return { error: { code, message }, note: `the error takes ${bytes} bytes; this is the beginning of its message` };
}

/** What is shown of it besides the structure. */
export function contentOf(view: CallResultView | undefined, handle: Readonly<Record<string, unknown>>): readonly Content[] {
  const job: Content = { type: "text", text: JSON.stringify(handle) };
  if (view === undefined) return [job];
  const { content, structured_result, ...rest } = view;
  if (view.delivery !== "inline") return [{ type: "text", text: JSON.stringify(rest) }, job];
  const blocks = content.length === 0 && structured_result !== null ? [{ type: "text", text: JSON.stringify(structured_result) }] : content;
  return [...(blocks as Content[]), job];
}
