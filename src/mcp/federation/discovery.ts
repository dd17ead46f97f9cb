import * as v from "valibot";
import { type ClusterEntry, routeRevision } from "../../config/cluster-entry.ts";
import { type DiscoveredServer, definitionDigest, REMOTE_MCP_CACHE, schemaDigest, ToolDefinition } from "../../config/remote-mcp-cache.ts";
import { allows, executionFingerprint, type RemoteMcpServer } from "../../config/remote-mcp-server.ts";
import { RelayError } from "../../domain/errors.ts";
import type { Job } from "../../domain/job.ts";
import type { RemoteTool } from "../../domain/mcp-call.ts";
import { jsonBytes } from "../../domain/primitives.ts";
import type { CallDocument } from "./call-result.ts";
import { isObject } from "./schema-walk.ts";

/** What a list of tools is made into what is known of a server from. */
export interface Discovery {
  readonly entry: ClusterEntry;
  readonly name: string;
  readonly registration: RemoteMcpServer;
  readonly jobId: string;
  /** How the job ended. */
  readonly outcome: Job["outcome"];
  readonly left: CallDocument;
  /** What was known before; null: nothing. */
  readonly before: DiscoveredServer | null;
  /** Whether whoever asks takes on what `before` has of what is described otherwise than it was accepted. */
  readonly accept: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface Discovered {
  readonly found: DiscoveredServer;
  /** Allowed tools that are described otherwise than when they were accepted, sorted. */
  readonly changed: readonly string[];
}

/**
 * What a list of tools says of a server, with what was accepted of it. A tool's definition is accepted when it is seen first, for as long as nobody is allowed to call it, and when somebody says so who was shown it: what the
 * server says only now, nobody has looked at.
 *
 * @throws RelayError mcp_discovery_failed where the server gave no list; state_conflict where it is the list of another command; payload_too_large for more allowed tools than are kept
 */
export function discovered({ entry, name, registration, jobId, outcome, left, before, accept, now }: Discovery): Discovered {
  const { document, artifact } = left;
  if (document.execution_fingerprint !== executionFingerprint(registration) || document.contract !== registration.contract) {
    throw new RelayError("state_conflict", `${name} was registered otherwise while it was asked`, { cluster: entry.name, job_id: jobId });
  }
  const listed = toolsOf(document.answer, { cluster: entry.name, jobId, outcome });
  const { tools, omitted } = kept(listed.tools, registration);
  const { accepted, changed } = acceptance(tools, registration, before, accept);
  return {
    changed,
    found: {
      cluster: entry.name,
      server: name,
      execution_fingerprint: document.execution_fingerprint,
      route_revision: routeRevision(entry),
      discovered_at: new Date(now).toISOString(),
      expires_at: new Date(now + registration.schema_cache_ttl_seconds * 1_000).toISOString(),
      schema_digest: schemaDigest(tools),
      tools: [...tools],
      omitted_tools: omitted + (listed.nameless ?? 0),
      accepted,
      provenance: {
        job_id: jobId,
        artifact_id: artifact.artifact_id,
        sha256: artifact.sha256,
        protocol_version: document.server?.protocol_version ?? null,
        server_name: document.server?.name ?? null,
        server_version: document.server?.version ?? null,
        server_artifact: document.server_artifact,
      },
    },
  };
}

/** The program was looked for as one name. */
const APART = "--command names the program alone, as jobs find it on the cluster; each argument of it is an --arg";

function toolsOf(
  answer: CallDocument["document"]["answer"],
  { cluster, jobId, outcome }: Pick<Discovery, "jobId" | "outcome"> & { readonly cluster: string },
): { readonly tools: readonly RemoteTool[]; readonly nameless?: number | undefined } {
  if (answer.kind === "tools") return answer;
  const [reason, message] =
    answer.kind === "failure"
      ? // What ended the call, its job knows.
        [answer.reason, answer.reason === "interrupted" ? outcome?.message || answer.message : answer.message]
      : answer.kind === "error"
        ? ["error", `${answer.error.message} (${answer.error.code})`]
        : ["result", "it answered with the result of a call"];
  throw new RelayError(
    "mcp_discovery_failed",
    `the server gave no list of its tools: ${message}`,
    { cluster, job_id: jobId, cause: reason },
    reason === "server_missing" ? APART : `clio-relay job read-log ${jobId} --cluster ${cluster} --stream stderr`,
  );
}

/** What one definition takes at most, and those of tools together that nobody is allowed to call: they are not to take the room of other servers'. In bytes of JSON. */
const DEFINITION_BYTES = 1024 * 1024;
const UNUSED_BYTES = 1024 * 1024;

/** What of a server's own words is kept; null of a tool that cannot be called by its name, or says too much. */
function definitionOf({ name, title, description, inputSchema, outputSchema, annotations }: RemoteTool): ToolDefinition | null {
  const definition = {
    name,
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { description } : {}),
    inputSchema: inputSchema ?? null,
    ...(isObject(outputSchema) ? { outputSchema } : {}),
    ...(isObject(annotations) ? { annotations } : {}),
  };
  const read = v.safeParse(ToolDefinition, definition);
  return read.success && jsonBytes(read.output) <= DEFINITION_BYTES ? read.output : null;
}

/** As many tools as there is room for, those that are allowed first. */
function kept(tools: readonly RemoteTool[], registration: RemoteMcpServer): { readonly tools: ToolDefinition[]; readonly omitted: number } {
  const definitions = tools.map(definitionOf).filter((one) => one !== null);
  const allowed = definitions.filter((tool) => allows(registration, tool.name));
  if (allowed.length > REMOTE_MCP_CACHE.tools) {
    throw new RelayError(
      "payload_too_large",
      `${allowed.length} tools of the server are allowed, and ${REMOTE_MCP_CACHE.tools} are kept`,
      { tools: allowed.length, max_tools: REMOTE_MCP_CACHE.tools },
      "allow those by name that are wanted: remote-mcp register --replace --allow-tool NAME …",
    );
  }
  let left = UNUSED_BYTES;
  const others = definitions.filter((tool) => {
    if (allows(registration, tool.name)) return false;
    left -= jsonBytes(tool);
    return left >= 0;
  });
  const room = new Set([...allowed, ...others].slice(0, REMOTE_MCP_CACHE.tools));
  return { tools: definitions.filter((tool) => room.has(tool)), omitted: tools.length - room.size };
}

function acceptance(
  tools: readonly ToolDefinition[],
  registration: RemoteMcpServer,
  before: DiscoveredServer | null,
  accept: boolean,
): { readonly accepted: Record<string, string>; readonly changed: string[] } {
  const known = before?.accepted ?? {};
  const seen = new Map((before?.tools ?? []).map((tool) => [tool.name, definitionDigest(tool)]));
  const changed: string[] = [];
  const now = tools.map((tool): [string, string] => {
    const digest = definitionDigest(tool);
    const old = Object.hasOwn(known, tool.name) ? known[tool.name]! : digest;
    const isTakenOn = accept && seen.get(tool.name) === digest;
    if (isTakenOn || old === digest || !allows(registration, tool.name)) return [tool.name, digest];
    changed.push(tool.name);
    return [tool.name, old];
  });
  const listed = new Set(now.map(([tool]) => tool));
  // A tool that is away comes back as what it was, or as one that has changed; however many names come and go, one that is allowed by its own is remembered.
  const gone = Object.entries(known).filter(([tool]) => !listed.has(tool));
  const [named, others] = [true, false].map((wanted) => gone.filter(([tool]) => registration.allow_tools.includes(tool) === wanted));
  const away = [...named!, ...others!].slice(0, REMOTE_MCP_CACHE.tools);
  return { accepted: Object.fromEntries([...now, ...away]), changed: changed.sort() };
}
