import * as v from "valibot";
import { DiscoveredServer } from "../../config/remote-mcp-cache.ts";
import { RemoteMcpServer } from "../../config/remote-mcp-server.ts";
import { Count, Id, looseText, Sha256 } from "../../domain/primitives.ts";
import { HIDDEN_REASONS } from "../../mcp/federation/federated.ts";

const SERVER = { cluster: Id, server_name: Id, registration: RemoteMcpServer };

export const RemoteMcpRegistered = v.strictObject({
  ...SERVER,
  execution_fingerprint: Sha256,
  /** Whether what is known of its tools is still about this command. */
  cache_reusable: v.boolean(),
  /** When the registration counts: when tools are listed next, or after a refresh. */
  reload_semantics: v.picklist(["next_list", "refresh"]),
});

export const RemoteMcpUnregistered = v.strictObject(SERVER);

const { tools: _tools, accepted: _accepted, cluster: _cluster, server: _server, ...discovery } = DiscoveredServer.entries;

export const RemoteMcpServers = v.strictObject({
  servers: v.array(
    v.strictObject({
      ...SERVER,
      execution_fingerprint: Sha256,
      /** What the last refresh found; null: there was none. */
      discovery: v.nullable(v.strictObject({ ...discovery, tools: Count })),
      /** Why none of its tools is shown to the widest of its profiles; null: nothing keeps them all. */
      hidden: v.nullable(v.picklist(HIDDEN_REASONS)),
    }),
  ),
});

const Tools = v.array(
  v.strictObject({
    name: v.string(),
    server_tool: v.string(),
    namespace: v.string(),
    contract: v.nullable(v.string()),
    arguments: v.picklist(["flat", "nested"]),
    routes: v.array(v.strictObject({ cluster: Id, server_name: Id })),
  }),
);
const Issues = v.array(
  v.strictObject({
    cluster: v.nullable(v.string()),
    server: v.nullable(v.string()),
    tool: v.nullable(v.string()),
    reason: v.picklist(HIDDEN_REASONS),
    message: v.string(),
  }),
);

export const RemoteMcpCatalogue = v.strictObject({
  profile: v.picklist(["user", "admin"]),
  catalog_revision: Sha256,
  tools: Tools,
  issues: Issues,
  remote_discovery_performed: v.literal(false),
});

const Shown = v.strictObject({ catalog_revision: Sha256, virtual_tools: Tools, issues: Issues });

export const RemoteMcpRefreshed = v.strictObject({
  discovery_job_id: Id,
  cache_path: looseText(4_096),
  cache_entry: v.strictObject({
    ...discovery,
    cluster: Id,
    server: Id,
    tools: v.array(v.strictObject({ name: v.string(), accepted_digest: v.nullable(Sha256) })),
  }),
  /** Allowed tools that are described otherwise than when they were accepted. */
  changed_tools: v.array(v.string()),
  /** How they are described now. */
  changed_definitions: v.array(v.record(v.string(), v.unknown())),
  profiles: v.strictObject({ user: Shown, admin: Shown }),
  mcp_server_restart_required: v.literal(false),
});
