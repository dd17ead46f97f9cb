import type { ClusterEntry } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { listTools, TOOLS } from "../../mcp/catalogue.ts";
import { cacheFile, RemoteCatalogue } from "../../mcp/federation/catalogue.ts";
import { listingOf } from "../../mcp/federation/listing.ts";
import type { Profile } from "../../mcp/tool.ts";

/** What mcp-server lists of servers on clusters, for a profile. */
export function catalogueView(
  entries: readonly ClusterEntry[],
  profile: Profile,
  { paths, env, now }: { readonly paths: Paths; readonly env: Environment; readonly now: () => number },
) {
  const projection = new RemoteCatalogue(cacheFile(paths, env), profile, now, new Set(TOOLS.map(({ name }) => name))).projection(entries);
  const { revision } = listingOf(listTools(profile, entries), projection);
  return {
    profile,
    catalog_revision: revision,
    tools: projection.tools.map(({ alias, definition, namespace, contract, routes, input }) => ({
      name: alias,
      server_tool: definition.name,
      namespace,
      contract,
      arguments: input.form,
      routes: [...routes.values()].map(({ cluster, server }) => ({ cluster, server_name: server })),
    })),
    issues: projection.issues.map((issue) => ({ ...issue })),
  };
}
export type CatalogueView = ReturnType<typeof catalogueView>;
