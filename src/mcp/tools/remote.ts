import * as v from "valibot";
import { Count, Id, jsonBytes, Sha256, Timestamp } from "../../domain/primitives.ts";
import { HIDDEN_REASONS } from "../federation/federated.ts";
import { defineTool, PROFILES, READS, type Tool } from "../tool.ts";
import { fitting } from "../views.ts";
import { said } from "./arguments.ts";

const ToolView = v.object({
  name: v.string(),
  server_tool: v.pipe(v.string(), v.description("as its server calls it")),
  clusters: v.array(v.object({ cluster: Id, server: Id, route_revision: Sha256, discovered_at: Timestamp, expires_at: Timestamp })),
  contract: v.nullable(v.string()),
  arguments: v.pipe(
    v.picklist(["flat", "nested"]),
    v.description("flat: the server's arguments and the controls beside cluster; nested: those in `arguments`, these in `controls`"),
  ),
});

const IssueView = v.object({
  cluster: v.nullable(v.string()),
  server: v.nullable(v.string()),
  tool: v.nullable(v.string()),
  reason: v.picklist(HIDDEN_REASONS),
  message: v.string(),
});

/** Room that is left for what is not shown. */
const ISSUES_BYTES = 16 * 1024;

export const remoteTools: readonly Tool[] = [
  defineTool({
    name: "relay_remote_mcp_context",
    title: "MCP servers on clusters",
    profile: "user",
    description:
      "Says which tools of MCP servers on clusters are among yours (remote_…), on which clusters, how old what is known of them is, and what is registered and not shown, with the reason. Asks no cluster. Calls of such tools are jobs: relay_wait has the result of one that took longer.",
    hints: READS,
    input: v.strictObject({ cursor: v.optional(said(Count, "next_cursor of the page before"), 0) }),
    output: v.object({
      context: v.object({ profile: v.picklist(PROFILES), tools: Count, issues: Count }),
      catalog_revision: Sha256,
      virtual_remote_tools: v.array(ToolView),
      next_cursor: v.nullable(Count),
      catalog_issues: v.array(IssueView),
      issues_truncated: v.boolean(),
    }),
    async run({ cursor }, call) {
      const { projection, revision } = await call.remote();
      const issues = fitting(projection.issues, 64 * 1024 - ISSUES_BYTES);
      const views = projection.tools.slice(cursor).map(({ alias, definition, routes, contract, input }) => ({
        name: alias,
        server_tool: definition.name.slice(0, 512),
        clusters: [...routes.values()].map(({ cluster, server, found: { route_revision, discovered_at, expires_at } }) => ({
          ...{ cluster, server, route_revision, discovered_at, expires_at },
        })),
        contract,
        arguments: input.form,
      }));
      const { items, truncated } = fitting(views, 4_096 + jsonBytes(issues.items));
      return {
        context: { profile: call.profile, tools: projection.tools.length, issues: projection.issues.length },
        catalog_revision: revision,
        virtual_remote_tools: items,
        next_cursor: truncated ? cursor + items.length : null,
        catalog_issues: issues.items,
        issues_truncated: issues.truncated,
      };
    },
  }),
];
