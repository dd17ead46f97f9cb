import { Hono } from "hono";
import { ClusterEntry } from "../config/cluster-entry.ts";
import { clusterEntry } from "../config/clusters.ts";
import { RelayError } from "../domain/errors.ts";
import { canonicalJson, sha256Hex } from "../lib/digest.ts";
import { carriesToken } from "./bearer.ts";
import { hostOperations, linkOperations } from "./desktop-links.ts";
import type { DesktopServices } from "./desktop-services.ts";
import { ClusterList, DesktopHealth, DesktopStatus, Stopping } from "./desktop-views.ts";
import { IDENTITY_PATH, Identity, IdentityQuery, identityOf } from "./identity.ts";
import { refuseOtherRegistry } from "./installation-check.ts";
import { json, mount, type Operation, operation } from "./operation.ts";
import { checkUnchanged } from "./range.ts";
import { withProblems } from "./with-problems.ts";

/** The desktop's own operations, in the order of the OpenAPI document. */
export const desktopOperations = (services: DesktopServices): Operation[] => [
  ...openOperations(services),
  ...daemonOperations(services),
  ...registryOperations(services),
  ...linkOperations(services),
  ...hostOperations(services),
];

/** What is answered without a token. */
const openOperations = (services: Pick<DesktopServices, "access" | "version">): Operation[] => [
  operation({
    method: "get",
    path: "/healthz",
    id: "desktopHealth",
    summary: "Whether the daemon answers",
    open: true,
    answer: { kind: "json", schema: DesktopHealth },
    handler: () => json({ ok: true, auth: services.access !== null, version: services.version }),
  }),
  operation({
    method: "get",
    path: IDENTITY_PATH,
    id: "desktopIdentity",
    summary: "The daemon's proof that it has the token: an HMAC over a nonce of the client's. On loopback only",
    open: true,
    query: IdentityQuery,
    answer: { kind: "json", schema: Identity },
    errors: ["not_found"],
    handler: ({ query }) => {
      if (services.access === null) throw new RelayError("not_found", "a Unix socket is proven by where it lies");
      return json(identityOf(services.access, query.nonce));
    },
  }),
];

const OPEN: ReadonlySet<string> = new Set(openOperations({ access: null, version: "" }).map(({ path }) => path));

/** The daemon itself. */
const daemonOperations = (services: DesktopServices): Operation[] => [
  operation({
    method: "get",
    path: "/status",
    id: "desktopStatus",
    summary: "The daemon: process, address, clusters",
    answer: { kind: "json", schema: DesktopStatus },
    errors: ["configuration_error"],
    handler: () => json(services.status()),
  }),
  operation({
    method: "post",
    path: "/stop",
    id: "stopDesktop",
    summary: "End the daemon; workers and jobs go on",
    answer: { kind: "json", schema: Stopping, status: [202] },
    handler: () => {
      services.stop();
      return json({ stopping: true }, 202);
    },
  }),
];

/** Names the content of an entry, so that a change can be held to the one that it was made from. */
const tagOf = (entry: ClusterEntry): string => `"${sha256Hex(canonicalJson(entry))}"`;

const entryAnswer = (entry: ClusterEntry): Response => json(entry, 200, { etag: tagOf(entry) });

/** The clusters that it knows. */
const registryOperations = (services: DesktopServices): Operation[] => [
  operation({
    method: "get",
    path: "/clusters",
    id: "listClusters",
    summary: "The registered clusters",
    answer: { kind: "json", schema: ClusterList },
    errors: ["configuration_error"],
    handler: () => json({ clusters: services.clusters() }),
  }),
  operation({
    method: "post",
    path: "/clusters",
    id: "putCluster",
    summary: "Add a cluster, or change the one of that name",
    body: ClusterEntry,
    answer: { kind: "json", schema: ClusterEntry },
    headers: { "If-Match": "entity tag that the entry must still have", "If-None-Match": "* for an entry that must not be there yet" },
    errors: ["configuration_error", "state_conflict", "precondition_failed"],
    handler: async ({ c, body }) => {
      const header = (name: string) => c.req.header(name);
      return entryAnswer(await services.putCluster(body, (now) => checkUnchanged(header, now === null ? null : tagOf(now))));
    },
  }),
  operation({
    method: "get",
    path: "/clusters/:name",
    id: "getCluster",
    summary: "One cluster's entry",
    answer: { kind: "json", schema: ClusterEntry },
    errors: ["cluster_not_found", "configuration_error"],
    handler: ({ param }) => {
      const name = param("name");
      return entryAnswer(clusterEntry({ clusters: services.clusters() }, name));
    },
  }),
  operation({
    method: "delete",
    path: "/clusters/:name",
    id: "removeCluster",
    summary: "Forget a cluster; its worker, queue and files stay",
    answer: { kind: "json", schema: ClusterEntry },
    errors: ["cluster_not_found", "configuration_error", "state_conflict"],
    handler: async ({ param }) => json(await services.removeCluster(param("name"))),
  }),
];

/**
 * The HTTP app of the desktop daemon: its own routes, and each cluster's below /clusters/{name}, forwarded unchanged.
 *
 * @param report gets failures that are not RelayErrors, for the process's log
 */
export function desktopApp(services: DesktopServices, report: (error: unknown) => void): Hono {
  const app = new Hono();
  withProblems(app, services.version, report, (request) => {
    authorize(services.access, request);
    refuseOtherRegistry(request.headers, services.clustersFile);
  });
  mount(app, desktopOperations(services));
  app.get("/openapi.json", async () => {
    const { desktopDocument } = await import("./desktop-document.ts");
    return json(desktopDocument(desktopOperations(services), services));
  });
  app.all("/clusters/:name/*", (c) => {
    // Taken from the URL as it came: decoding and encoding again would change what the worker sees.
    const target = /^\w+:\/\/[^/]*\/clusters\/[^/]+(\/.*)$/.exec(c.req.url)?.[1] ?? "/";
    return services.forward(c.req.param("name"), target, c.req.raw);
  });
  return app;
}

/**
 * Let a request to a loopback listener pass: it must name the listener as its host (a page of another site cannot, whatever its
 * name resolves to) and, but for what is open, carry the token.
 */
function authorize(access: DesktopServices["access"], request: Request): void {
  if (access === null) return;
  if (request.headers.get("host") !== access.host) throw new RelayError("host_refused", "the Host header names another server");
  if (OPEN.has(new URL(request.url).pathname)) return;
  if (!carriesToken(request.headers.get("authorization"), access.token)) {
    throw new RelayError("authentication_required", "the daemon's token is missing or wrong");
  }
}
