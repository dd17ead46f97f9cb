import path from "node:path";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { MCP_LIMITS, ServerArtifact } from "../domain/mcp-call.ts";
import { Count, Id, type JsonObject, looseText, recordOf, Sha256, Timestamp } from "../domain/primitives.ts";
import { canonicalJson, sha256Hex } from "../lib/digest.ts";
import { isErrno, makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { lockWithin } from "../lib/files/waited-lock.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import { readPrivateDocument } from "./private-document.ts";

const VERSION = 1;
const LOCK_WAIT_MS = 10_000;
/** Of the file, of its entries, and of the tools of one of them. */
export const REMOTE_MCP_CACHE = { bytes: 16 * 1024 * 1024, entries: 1_024, tools: 2_048 } as const;
/** Digests of definitions that were accepted, of one server: of tools that come and go, too. */
const ACCEPTED_MAX = 2 * REMOTE_MCP_CACHE.tools;

/** JSON of the server's, which is looked into where it is used. */
const Verbatim = v.custom<JsonObject>((value) => value !== null && typeof value === "object" && !Array.isArray(value), "must be an object");
/** As jobs can name it. */
const ToolName = v.pipe(v.string(), v.minLength(1), v.maxLength(256));

/** How a server describes a tool: what an agent is shown of it. */
export const ToolDefinition = v.strictObject({
  name: ToolName,
  title: v.exactOptional(v.string()),
  description: v.exactOptional(v.string()),
  inputSchema: v.unknown(),
  outputSchema: v.exactOptional(v.unknown()),
  annotations: v.exactOptional(Verbatim),
});
export type ToolDefinition = v.InferOutput<typeof ToolDefinition>;

const digests = new WeakMap<ToolDefinition, string>();

/** SHA-256 over all that is kept of a definition, as canonical JSON. */
export function definitionDigest(tool: ToolDefinition): string {
  let digest = digests.get(tool);
  if (digest === undefined) {
    digest = sha256Hex(canonicalJson(tool));
    digests.set(tool, digest);
  }
  return digest;
}

/** The same over the digests of a list. */
export const schemaDigest = (tools: readonly ToolDefinition[]): string => sha256Hex(canonicalJson(tools.map(definitionDigest)));

/** What a refresh found. */
export const DiscoveredServer = v.strictObject({
  cluster: Id,
  server: Id,
  execution_fingerprint: Sha256,
  /** Of the cluster, when it was asked. */
  route_revision: Sha256,
  discovered_at: Timestamp,
  expires_at: Timestamp,
  /** Of `tools`. */
  schema_digest: Sha256,
  tools: v.pipe(v.array(ToolDefinition), v.maxLength(REMOTE_MCP_CACHE.tools)),
  /** Tools that the server has besides, for which there is no room. */
  omitted_tools: Count,
  /** Digest of the definition that somebody has accepted, by tool. */
  accepted: v.pipe(
    recordOf(ToolName, Sha256),
    v.check((accepted) => Object.keys(accepted).length <= ACCEPTED_MAX, `at most ${ACCEPTED_MAX} digests`),
  ),
  /** Where it comes from. */
  provenance: v.strictObject({
    job_id: Id,
    artifact_id: Id,
    sha256: Sha256,
    protocol_version: v.nullable(looseText(64)),
    server_name: v.nullable(looseText(256)),
    server_version: v.nullable(looseText(256)),
    server_artifact: ServerArtifact,
  }),
});
export type DiscoveredServer = v.InferOutput<typeof DiscoveredServer>;

const Cache = v.strictObject({
  version: v.literal(VERSION),
  entries: v.pipe(
    v.array(DiscoveredServer),
    v.maxLength(REMOTE_MCP_CACHE.entries),
    v.check((entries) => new Set(entries.map(keyOf)).size === entries.length, "names a server twice"),
  ),
});

const keyOf = ({ cluster, server }: Pick<DiscoveredServer, "cluster" | "server">): string => `${cluster}/${server}`;

type Files = Pick<Paths, "remoteMcpCacheFile" | "runDir">;
type Owner = Pick<Environment, "uid" | "platform">;

/** What is known of servers on clusters. */
export interface RemoteMcpCache {
  readonly entries: readonly DiscoveredServer[];
  /** Entries whose tools are not those that their digest was made over; they are not among `entries`. */
  readonly damaged: readonly Pick<DiscoveredServer, "cluster" | "server">[];
}

const EMPTY: RemoteMcpCache = { entries: [], damaged: [] };

/**
 * What refreshes have found; nothing where there was none.
 *
 * @throws RelayError configuration_error for a file that others may read or write, or that does not fit
 */
export function readRemoteMcpCache({ remoteMcpCacheFile: file }: Pick<Files, "remoteMcpCacheFile">, env: Owner): RemoteMcpCache {
  const hint = `rm ${file}, and refresh: clio-relay remote-mcp refresh --cluster NAME --name NAME`;
  const read = readPrivateDocument(Cache, file, REMOTE_MCP_CACHE.bytes, env, hint);
  if (read === null) return EMPTY;
  const damaged = read.entries.filter(({ tools, schema_digest }) => schemaDigest(tools) !== schema_digest);
  return { entries: read.entries.filter((entry) => !damaged.includes(entry)), damaged };
}

/**
 * Change it under a lock. `change` returns the new list, and may see again what it has seen.
 *
 * @throws RelayError configuration_error as for reading; payload_too_large where it would be more than it may be; state_conflict where another process holds it; what `change` throws
 */
export async function updateRemoteMcpCache(
  files: Files,
  env: Owner,
  change: (entries: readonly DiscoveredServer[]) => readonly DiscoveredServer[],
): Promise<void> {
  makePrivateDirectory(path.dirname(files.remoteMcpCacheFile));
  makePrivateDirectory(files.runDir);
  const lock = await lockWithin(path.join(files.runDir, "remote-mcp-cache.lock"), LOCK_WAIT_MS).catch((error: unknown) => {
    if (isErrno(error, "EAGAIN")) throw new RelayError("state_conflict", "another process is changing what is known of MCP servers");
    throw error;
  });
  try {
    const before = readRemoteMcpCache(files, env).entries;
    const entries = change(before);
    if (entries === before) return;
    const text = `${JSON.stringify({ version: VERSION, entries })}\n`;
    const bytes = Buffer.byteLength(text);
    if (entries.length > REMOTE_MCP_CACHE.entries || bytes > REMOTE_MCP_CACHE.bytes) {
      throw new RelayError(
        "payload_too_large",
        `what is known of MCP servers would take ${bytes} bytes in ${entries.length} entries; it may take ${REMOTE_MCP_CACHE.bytes} in ${REMOTE_MCP_CACHE.entries}`,
        { size_bytes: bytes, max_bytes: REMOTE_MCP_CACHE.bytes, max_tools_of_a_list: MCP_LIMITS.tools },
        "clio-relay remote-mcp unregister --cluster NAME --name NAME makes room",
      );
    }
    writeFileAtomic(files.remoteMcpCacheFile, text);
  } finally {
    lock?.release();
  }
}

/** The list with another entry in place of the one of its server. */
export const withEntry = (entries: readonly DiscoveredServer[], entry: DiscoveredServer): DiscoveredServer[] => [
  ...entries.filter((one) => keyOf(one) !== keyOf(entry)),
  entry,
];
