import * as v from "valibot";
import type { LinkStatus } from "../../api/desktop/link-views.ts";
import { type ClusterEntry, routeRevision } from "../../config/cluster-entry.ts";
import { LINK_STATES } from "../../domain/link.ts";
import { Id, Sha256 } from "../../domain/primitives.ts";
import type { Clusters } from "../clusters.ts";
import { defineTool, type Profile, READS, type Tool } from "../tool.ts";
import { fitting } from "../views.ts";

const ClusterView = v.object({
  cluster: Id,
  route_revision: Sha256,
  mode: v.pipe(v.string(), v.description("how it is reached")),
  link: v.object({
    state: v.picklist(LINK_STATES),
    round_trip_ms: v.nullable(v.number()),
    worker_version: v.nullable(v.string()),
    detail: v.nullable(v.string()),
  }),
  may_submit_commands: v.pipe(
    v.boolean(),
    v.description("whether relay_submit_command takes it; if not, a person may allow it: clio-relay cluster add NAME --agent-commands"),
  ),
});

export const ClustersView = v.object({ clusters: v.array(ClusterView), truncated: v.boolean() });

/** States out of which a link comes by a command. */
const SHUT: ReadonlySet<LinkStatus["state"]> = new Set(["down", "dropped", "authorization_required"]);

/** What there is to say of a link; of one that nobody comes through, with what a person types. */
function detailOf({ name, mode }: ClusterEntry, link: LinkStatus | undefined): string | null {
  const { state = "down", detail = null } = link ?? {};
  if (!SHUT.has(state) || detail?.includes("clio-relay ")) return detail;
  const command = mode === "local" ? `clio-relay worker start --cluster ${name}` : `clio-relay connect ${name}`;
  return `${detail ?? "there is no link"}; a person types: ${command}`;
}

/** The clusters with their links, as the daemon knows them: no cluster is asked. */
export async function clustersView(clusters: Clusters, profile: Profile, signal: AbortSignal): Promise<v.InferOutput<typeof ClustersView>> {
  const [entries, links] = await Promise.all([clusters.entries(signal), clusters.links(signal)]);
  const byName = new Map(links.map((link) => [link.cluster, link]));
  const views = entries.map((entry) => {
    const link = byName.get(entry.name);
    return {
      cluster: entry.name,
      route_revision: routeRevision(entry),
      mode: entry.mode,
      link: {
        state: link?.state ?? "down",
        round_trip_ms: link?.round_trip_ms ?? null,
        worker_version: link?.worker_version ?? null,
        detail: detailOf(entry, link),
      },
      may_submit_commands: profile === "admin" || entry.agent_commands === true,
    };
  });
  const { items, truncated } = fitting(views);
  return { clusters: items, truncated };
}

export const clusterTools: readonly Tool[] = [
  defineTool({
    name: "relay_list_clusters",
    title: "The clusters",
    profile: "user",
    description:
      "Lists the clusters that jobs can be submitted to, with the state of the link to each: up is ready; where it is not, detail says why, and the command that a person types. Begin with it where you do not know what there is.",
    hints: READS,
    input: v.strictObject({}),
    output: ClustersView,
    run: (_args, { clusters, profile, signal }) => clustersView(clusters, profile, signal),
  }),
];
