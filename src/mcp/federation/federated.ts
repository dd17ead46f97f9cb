import type { DiscoveredServer, ToolDefinition } from "../../config/remote-mcp-cache.ts";
import type { RemoteMcpServer } from "../../config/remote-mcp-server.ts";
import type { WithControls } from "./input-schema.ts";

/** Why something that is registered is not shown. */
export const HIDDEN_REASONS = [
  "catalogue_unreadable",
  "entry_damaged",
  "not_discovered",
  "expired",
  "execution_changed",
  "route_changed",
  "mutable_server_artifact",
  "tool_missing",
  "tools_omitted",
  "invalid_schema",
  "definition_changed",
] as const;
export type HiddenReason = (typeof HIDDEN_REASONS)[number];

export interface CatalogueIssue {
  readonly cluster: string | null;
  readonly server: string | null;
  readonly tool: string | null;
  readonly reason: HiddenReason;
  /** For people. */
  readonly message: string;
}

/** A server on one cluster, as it may be called now. */
export interface Route {
  readonly cluster: string;
  readonly server: string;
  readonly registration: RemoteMcpServer;
  readonly found: DiscoveredServer;
}

/** A tool of servers on one or several clusters, which describe it alike. */
export interface FederatedTool {
  /** What it is called here. */
  readonly alias: string;
  readonly definition: ToolDefinition;
  readonly namespace: string;
  readonly contract: string | null;
  /** By cluster. */
  readonly routes: ReadonlyMap<string, Route>;
  readonly input: WithControls;
}

/** What of the servers on clusters a profile is shown. */
export interface Projection {
  /** Sorted by alias. */
  readonly tools: readonly FederatedTool[];
  readonly byAlias: ReadonlyMap<string, FederatedTool>;
  readonly issues: readonly CatalogueIssue[];
  /** When the first of them expires, in milliseconds since the epoch; infinite where none does. */
  readonly validUntil: number;
}

/** What of it is shown, with the revision of all that is listed. */
export interface RemoteListing {
  readonly projection: Projection;
  /** SHA-256, as tools/list gives it. */
  readonly revision: string;
}
