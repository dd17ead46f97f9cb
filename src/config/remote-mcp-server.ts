import * as v from "valibot";
import { McpReuse, mcpExecution } from "../domain/mcp-call.ts";
import { text } from "../domain/primitives.ts";
import { McpCallSpec } from "../domain/specs.ts";
import { canonicalJson, sha256Hex } from "../lib/digest.ts";

/** Registrations of one cluster, and of all together, and names in one allow-list. */
export const REMOTE_MCP_BOUNDS = { servers: 256, serversInAll: 1_024, allowTools: 2_048, profiles: 2 } as const;
export const REMOTE_MCP_PROFILES = ["user", "admin"] as const;

/** Allows every tool of a server. */
export const ALL_TOOLS = "*";
/** How long a discovery counts, and how long one call may take, unless more is asked for; in seconds. */
export const SCHEMA_CACHE_TTL_SECONDS = 86_400;
export const CALL_TIMEOUT_SECONDS = 300;
const TTL_MAX_SECONDS = 366 * 86_400;
export const CALL_TIMEOUT_MAX_SECONDS = 86_400;

const { server, server_args, env_from } = McpCallSpec.entries;
const seconds = (most: number) => v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(most));

/** What stands between `remote_` and the tool's name. */
export const Namespace = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "must be letters, digits, . _ and -, at most 64, and begin with a letter or digit"),
);

/** An MCP server on a cluster, some of whose tools are tools of this endpoint (docs/federation.md). Nothing of it is shown until a tool is allowed and the server was asked. */
export const RemoteMcpServer = v.strictObject({
  /** Program, as the cluster finds it, and its arguments; no shell reads them. */
  command: server,
  args: server_args,
  /** Names of variables only: the server's, and the worker's whose value it gets. */
  env_from,
  /** Null: the registration's name. */
  namespace: v.optional(v.nullable(Namespace), null),
  /** What it is held to be a server of; null: nothing in particular. */
  contract: v.optional(v.nullable(text(256)), null),
  /** Tools by their own names, or `*`. Empty: none. */
  allow_tools: v.optional(v.pipe(v.array(text(256)), v.maxLength(REMOTE_MCP_BOUNDS.allowTools)), []),
  profiles: v.optional(v.pipe(v.array(v.picklist(REMOTE_MCP_PROFILES)), v.minLength(1), v.maxLength(REMOTE_MCP_BOUNDS.profiles)), [
    "admin",
  ]),
  schema_cache_ttl_seconds: v.optional(seconds(TTL_MAX_SECONDS), SCHEMA_CACHE_TTL_SECONDS),
  call_timeout_seconds: v.optional(seconds(CALL_TIMEOUT_MAX_SECONDS), CALL_TIMEOUT_SECONDS),
  enabled: v.optional(v.boolean(), true),
  /** How long the server is kept running between calls; null: each call starts it anew. */
  reuse: v.optional(v.nullable(McpReuse), null),
});
export type RemoteMcpServer = v.InferOutput<typeof RemoteMcpServer>;

/** Digest of what decides which program answers, as jobs have it: a discovery counts for the registration that has the same. */
export const executionFingerprint = ({ command, args, env_from }: Pick<RemoteMcpServer, "command" | "args" | "env_from">): string =>
  sha256Hex(canonicalJson(mcpExecution({ server: command, server_args: args, env_from })));

/** Whether a registration allows a tool. */
export const allows = ({ allow_tools }: Pick<RemoteMcpServer, "allow_tools">, tool: string): boolean =>
  allow_tools.includes(ALL_TOOLS) || allow_tools.includes(tool);

export const namespaceOf = (name: string, { namespace }: Pick<RemoteMcpServer, "namespace">): string => namespace ?? name;
