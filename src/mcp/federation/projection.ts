import { type ClusterEntry, routeRevision } from "../../config/cluster-entry.ts";
import { type DiscoveredServer, definitionDigest, type RemoteMcpCache, type ToolDefinition } from "../../config/remote-mcp-cache.ts";
import { ALL_TOOLS, allows, executionFingerprint, namespaceOf, type RemoteMcpServer } from "../../config/remote-mcp-server.ts";
import type { Profile } from "../tool.ts";
import { aliasesOf, type Identity, identityKey } from "./alias.ts";
import { CONTROLS } from "./controls.ts";
import type { CatalogueIssue, FederatedTool, HiddenReason, Projection, Route } from "./federated.ts";
import { withControls } from "./input-schema.ts";
import { inputSchemaProblem } from "./schema-problem.ts";

/** What is known of one tool of a discovery, found out once. */
interface Examined {
  readonly tool: ToolDefinition;
  readonly digest: string;
  readonly problem: string | null;
}

const examined = new WeakMap<DiscoveredServer, readonly Examined[]>();

function examine(found: DiscoveredServer): readonly Examined[] {
  let known = examined.get(found);
  if (known === undefined) {
    known = found.tools.map((tool) => ({ tool, digest: definitionDigest(tool), problem: inputSchemaProblem(tool.inputSchema) }));
    examined.set(found, known);
  }
  return known;
}

interface Candidate {
  readonly identity: Identity;
  readonly tool: ToolDefinition;
  readonly route: Route;
}

/**
 * Decide what a profile is shown. It depends on nothing else than what is given: no cluster is asked.
 *
 * @param now milliseconds since the epoch
 * @param taken names of tools that are always there
 */
export function projectionOf(
  entries: readonly ClusterEntry[],
  cache: RemoteMcpCache,
  profile: Profile,
  now: number,
  taken: ReadonlySet<string>,
): Projection {
  const issues: CatalogueIssue[] = [];
  const candidates: Candidate[] = [];
  let validUntil = Number.POSITIVE_INFINITY;
  for (const { entry, name, registration } of registrationsOf(entries, profile)) {
    const issue = (reason: HiddenReason, message: string, tool: string | null = null): void =>
      void issues.push({ cluster: entry.name, server: name, tool, reason, message });
    const found = cache.entries.find((one) => one.cluster === entry.name && one.server === name);
    if (found === undefined) {
      const damaged = cache.damaged.some((one) => one.cluster === entry.name && one.server === name);
      if (damaged) issue("entry_damaged", "what was found is not what it was written as; refresh it");
      else issue("not_discovered", "there is no list of its tools; refresh it");
      continue;
    }
    const hidden = hiddenServer(entry, registration, found, profile, now);
    if (hidden !== null) {
      issue(...hidden);
      continue;
    }
    validUntil = Math.min(validUntil, Date.parse(found.expires_at));
    candidates.push(...candidatesOf({ cluster: entry.name, server: name, registration, found }, issue));
  }
  const tools = namedTools(candidates, taken);
  return { tools, byAlias: new Map(tools.map((tool) => [tool.alias, tool])), issues, validUntil };
}

function registrationsOf(entries: readonly ClusterEntry[], profile: Profile) {
  return entries
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) =>
      Object.entries(entry.remote_mcp_servers ?? {})
        .filter(([, { enabled, profiles }]) => enabled && (profile === "admin" || profiles.includes(profile)))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, registration]) => ({ entry, name, registration })),
    );
}

/** Why nothing of a server is shown; null where something may be. */
export function hiddenServer(
  entry: ClusterEntry,
  registration: RemoteMcpServer,
  found: DiscoveredServer,
  profile: Profile,
  now: number,
): [HiddenReason, string] | null {
  if (found.execution_fingerprint !== executionFingerprint(registration))
    return ["execution_changed", "command, arguments or variables are others since its tools were asked for; refresh it"];
  if (found.route_revision !== routeRevision(entry))
    return ["route_changed", "the way to the cluster is another since its tools were asked for; refresh it"];
  // A clock that was put back does not make an old discovery a new one.
  if (now >= Date.parse(found.expires_at) || now < Date.parse(found.discovered_at) - 86_400_000)
    return ["expired", `what was found counted until ${found.expires_at}; refresh it`];
  const { server_artifact: artifact } = found.provenance;
  if (profile === "user" && !artifact.immutable)
    return [
      "mutable_server_artifact",
      `the server may be another program tomorrow (${artifact.cause}): only agents of mcp-server --profile admin are shown its tools`,
    ];
  return null;
}

function candidatesOf(route: Route, issue: (reason: HiddenReason, message: string, tool: string | null) => void): Candidate[] {
  const { server, registration, found } = route;
  const all = examine(found);
  const names = new Set(all.map(({ tool }) => tool.name));
  for (const name of registration.allow_tools)
    if (name !== ALL_TOOLS && !names.has(name)) issue("tool_missing", "the server has no tool of that name", name);
  if (found.omitted_tools > 0) {
    const why = "there is no room for more, or they have no name, or their names or definitions are too long";
    issue("tools_omitted", `tools of it that are not kept: ${found.omitted_tools}; ${why}`, null);
  }
  return all.flatMap(({ tool, digest, problem }) => {
    if (!allows(registration, tool.name)) return [];
    if (problem !== null) issue("invalid_schema", `its input schema cannot be used: ${problem}`, tool.name);
    else if (found.accepted[tool.name] !== digest)
      issue(
        "definition_changed",
        "its server describes it otherwise than when it was accepted; look at it, and refresh with --accept",
        tool.name,
      );
    else {
      const { contract } = registration;
      const identity = { namespace: namespaceOf(server, registration), tool: tool.name, definition: digest, contract, server: null };
      return [{ identity, tool, route }];
    }
    return [];
  });
}

/** One tool for each that is the same on several clusters. */
function namedTools(candidates: readonly Candidate[], taken: ReadonlySet<string>): FederatedTool[] {
  const groups = [...Map.groupBy(candidates, ({ identity }) => identityKey(identity)).values()].flatMap((group) => {
    const clusters = new Set(group.map(({ route }) => route.cluster));
    if (clusters.size === group.length) return [group];
    // A cluster that has it twice: which server is meant has to be told.
    return [...Map.groupBy(group, ({ route }) => route.server)].map(([server, those]) =>
      those.map((one) => ({ ...one, identity: { ...one.identity, server } })),
    );
  });
  const aliases = aliasesOf(
    groups.map((group) => group[0]!.identity),
    taken,
  );
  const tools = groups.map((group): FederatedTool => {
    const { identity, tool } = group[0]!;
    const routes = new Map(group.map(({ route }) => [route.cluster, route]));
    const input = withControls(tool.inputSchema as Readonly<Record<string, unknown>>, [...routes.keys()], CONTROLS);
    return {
      alias: aliases.get(identityKey(identity))!,
      definition: tool,
      namespace: identity.namespace,
      contract: identity.contract,
      routes,
      input,
    };
  });
  return tools.sort((a, b) => (a.alias < b.alias ? -1 : 1));
}
