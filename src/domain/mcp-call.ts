import * as v from "valibot";
import { ByteCount, Count, Finite, Id, type JsonObject, looseText, Sha256, text } from "./primitives.ts";

/** Bounds of one call of an MCP server (docs/federation.md). */
export const MCP_LIMITS = {
  /** One message of the server's; and all pages of its list of tools together. */
  responseBytes: 16 * 1024 * 1024,
  /** All that it writes to standard output during a call. */
  stdoutBytes: 32 * 1024 * 1024,
  /** Lines of that which are no message, and are shown; further ones are counted. */
  junkLines: 20_000,
  /** What is kept of its standard error during a call. */
  stderrBytes: 4 * 1024 * 1024,
  /** A result that stands in the document itself; a larger one is an artifact of its own. */
  inlineBytes: 64 * 1024,
  /** The beginning of such a larger one, in UTF-16 units. */
  previewLength: 4_096,
  pages: 64,
  tools: 10_000,
  serverArgs: 256,
  envRefs: 256,
  argumentsBytes: 512 * 1024,
  /** Rounds in which a call asks for input, and requests of one round together. */
  inputRounds: 10,
  inputRoundBytes: 96 * 1024,
  /** Seconds of a call, and of a list of tools, that name no time limit. */
  callSeconds: 300,
  listSeconds: 120,
  /** The longest call that may take a slot of the control lane, in seconds. */
  controlSeconds: 600,
} as const;

/** The tools list of an earlier job that shows that a tool only reads (docs/federation.md, The lane). */
export const ControlQueryEvidence = v.strictObject({ artifact_id: Id, sha256: Sha256 });
export type ControlQueryEvidence = v.InferOutput<typeof ControlQueryEvidence>;

/** For how long a server may be kept for the calls that follow; whichever comes first ends it. */
export const McpReuse = v.strictObject({
  idle_seconds: v.optional(v.pipe(Count, v.minValue(1), v.maxValue(86_400)), 300),
  max_calls: v.optional(v.pipe(Count, v.minValue(1), v.maxValue(1_000_000)), 1_000),
  /** Resident memory of the server and all that it started, looked at between calls. */
  max_memory_bytes: v.optional(v.pipe(ByteCount, v.minValue(1024 * 1024)), 1024 * 1024 * 1024),
});
export type McpReuse = v.InferOutput<typeof McpReuse>;

/** What names a server: two registrations with the same are the same program with the same variables. */
export interface McpExecution {
  readonly server: string;
  readonly server_args: readonly string[];
  readonly env_from: Readonly<Record<string, string>>;
}

/** Its SHA-256 over canonical JSON (RFC 8785) is the execution fingerprint. */
export const mcpExecution = ({ server, server_args, env_from }: McpExecution): McpExecution => ({
  server,
  server_args: [...server_args],
  env_from: { ...env_from },
});

/** Why nobody can say that a server is the same program tomorrow. */
export const MUTABLE_CAUSES = [
  "not_established",
  "not_found",
  "launcher",
  "interpreter",
  "script",
  "writable",
  "changed_file",
  "foreign_file",
  "no_manifest",
  "tarball_missing",
  "unreadable",
  "too_large",
] as const;

/** What the program of a server is, as found where it runs. */
export const ServerArtifact = v.variant("immutable", [
  v.strictObject({
    immutable: v.literal(true),
    kind: v.picklist(["executable", "python_distribution", "npm_package"]),
    /** Of an executable its SHA-256; else over name, version and manifest. */
    digest: Sha256,
    /** Absolute path of the executable, of the distribution's manifest or of the package's directory. */
    path: text(4_096),
    name: v.nullable(looseText(512)),
    version: v.nullable(looseText(128)),
    /** Files that were held against it. */
    files: Count,
  }),
  v.strictObject({
    immutable: v.literal(false),
    cause: v.picklist(MUTABLE_CAUSES),
    detail: looseText(1_000),
    path: v.nullable(looseText(4_096)),
  }),
]);
export type ServerArtifact = v.InferOutput<typeof ServerArtifact>;

/** What kept a call from an answer of the server's. */
export const MCP_FAILURES = [
  "server_missing",
  "environment_missing",
  "server_artifact_changed",
  "server_exited",
  "handshake_failed",
  "protocol_violation",
  "response_too_large",
  "output_exceeded",
  "list_cursor_repeated",
  "list_conflict",
  "list_pages_exceeded",
  "list_tools_exceeded",
  "input_refused",
  "interrupted",
] as const;
export const McpFailure = v.picklist(MCP_FAILURES);
export type McpFailure = v.InferOutput<typeof McpFailure>;

/** A JSON object as JSON.parse made it. What a server says is not looked into: it may have 16 MiB. */
const Verbatim = v.custom<JsonObject>((value) => value !== null && typeof value === "object" && !Array.isArray(value), "must be an object");

/** One tool as its server describes it, with every member that it has. */
export type RemoteTool = JsonObject & { readonly name: string };
const RemoteTool = v.pipe(
  Verbatim,
  v.custom<RemoteTool>((tool) => typeof (tool as JsonObject)["name"] === "string", "must have a name"),
);

/** What came of the call. */
export const McpAnswer = v.variant("kind", [
  v.strictObject({
    kind: v.literal("tools"),
    pages: Count,
    tools: v.pipe(v.array(RemoteTool), v.maxLength(MCP_LIMITS.tools)),
    /** Entries that have no name, and cannot be called; left out where there are none. */
    nameless: v.optional(Count),
  }),
  v.strictObject({
    kind: v.literal("result"),
    is_error: v.boolean(),
    /** CallToolResult without `_meta` and `resultType`; null where it is the artifact that `content` names. */
    result: v.nullable(Verbatim),
    /** Its `_meta`; null where it has none, or one of more than 64 KiB. */
    meta: v.nullable(Verbatim),
    /** Bytes of the result as JSON. */
    size_bytes: ByteCount,
    /** An artifact of this job, of kind execution_output, that holds the result as JSON. */
    content: v.nullable(v.strictObject({ name: text(256), size_bytes: ByteCount, sha256: Sha256 })),
    /** The beginning of its text, where `content` is there. */
    preview: v.nullable(looseText(MCP_LIMITS.previewLength)),
  }),
  v.strictObject({
    kind: v.literal("error"),
    /** The server's own error of the protocol. */
    error: v.strictObject({ code: Finite, message: looseText(65_536), data: v.optional(v.unknown()) }),
  }),
  v.strictObject({ kind: v.literal("failure"), reason: McpFailure, message: looseText(2_000) }),
]);
export type McpAnswer = v.InferOutput<typeof McpAnswer>;

/** How far a call came. */
export const McpPhase = v.picklist(["start", "handshake", "call", "done"]);
export type McpPhase = v.InferOutput<typeof McpPhase>;

/** `mcp-result.json`, the content of the artifact mcp_result that every call leaves that was begun. */
export const McpResult = v.strictObject({
  schema_version: v.literal("clio-relay.mcp-result.v1"),
  operation: v.picklist(["tools/list", "tools/call"]),
  tool: v.nullable(looseText(256)),
  execution_fingerprint: Sha256,
  /** expected_registered_contract of the job, as it was. */
  contract: v.nullable(looseText(256)),
  server_artifact: ServerArtifact,
  /** Null where there was no handshake. */
  server: v.nullable(
    v.strictObject({ protocol_version: looseText(64), name: looseText(256), version: looseText(256), capabilities: Verbatim }),
  ),
  phase: McpPhase,
  /** Whether the tool may have begun: the request was written to the server. */
  sent: v.boolean(),
  answer: McpAnswer,
  output: v.strictObject({
    stdout_bytes: ByteCount,
    stderr_bytes: ByteCount,
    stderr_dropped_bytes: ByteCount,
    /** Lines of standard output that were no message, and what they took. */
    junk_lines: Count,
    junk_bytes: ByteCount,
    /** Answers to what was not asked, or was answered before. */
    stray_answers: Count,
  }),
  /** Milliseconds from the server's start to its handshake, and from the request to its answer; null where it did not come so far. */
  timing: v.strictObject({ handshake_ms: v.nullable(Finite), answer_ms: v.nullable(Finite) }),
  /** The call's number among those that this server process answered, from 1. */
  server_call: Count,
});
export type McpResult = v.InferOutput<typeof McpResult>;
