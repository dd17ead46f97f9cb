import { type Context, Hono } from "hono";
import { ClusterEntry } from "../../config/cluster-entry.ts";
import { clusterEntry } from "../../config/clusters.ts";
import { RelayError } from "../../domain/errors.ts";
import { canonicalJson, sha256Hex } from "../../lib/digest.ts";
import { type Access, admit } from "../listener/access.ts";
import { crossOrigin } from "../listener/cross-origin.ts";
import { IDENTITY_PATH, Identity, IdentityQuery, identityOf } from "../listener/identity.ts";
import { json, mount, type Operation, operation } from "../operation.ts";
import { checkUnchanged } from "../range.ts";
import { metricsRoute } from "../routes/metrics.ts";
import { openApiRoute } from "../routes/open-api.ts";
import { withProblems } from "../with-problems.ts";
import { refuseOtherRegistry } from "./installation-check.ts";
import { hostOperations, linkOperations } from "./links.ts";
import { listenerOperations } from "./listener.ts";
import type { DesktopServices } from "./services.ts";
import { ClusterList, DesktopHealth, DesktopStatus, Stopping } from "./views.ts";

/** The desktop's own operations, in the order of the OpenAPI document. */
export const desktopOperations = (services: DesktopServices): Operation[] => [
  ...openOperations(services),
  openApiRoute("desktopOpenApi", "This document: the daemon's own operations, and those of every worker", async () => {
    const { desktopDocument } = await import("./document.ts");
    return desktopDocument(desktopOperations(services), services);
  }),
  ...daemonOperations(services),
  ...registryOperations(services),
  ...linkOperations(services),
  ...listenerOperations(services),
  metricsRoute("desktopMetrics", () => services.metrics()),
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
      const secret = services.access?.identity ?? null;
      if (secret === null) throw new RelayError("not_found", "this listener is not proven by a nonce");
      return json(identityOf(secret, query.nonce));
    },
  }),
];

/** Whether a route is answered without a token. */
const isOpen = (access: Access, path: string): boolean => path === "/healthz" || (path === IDENTITY_PATH && access.identity !== null);

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
  const { access } = services;
  if (access !== null) crossOrigin(app, access);
  const admitted = (c: Context): void => {
    // By the path that the routes are found by, so that no other spelling of one that is open leads to another.
    if (access !== null) admit(access, c.req.raw, isOpen(access, c.req.path));
    refuseOtherRegistry(c.req.raw.headers, services.clustersFile);
  };
  withProblems(app, services.version, report, admitted, "a cluster's routes are below /clusters/NAME; GET /openapi.json lists all");
  mount(app, desktopOperations(services));
  app.all("/clusters/:name/*", (c) => {
    // Taken from the URL as it came: decoding and encoding again would change what the worker sees.
    const target = /^\w+:\/\/[^/]*\/clusters\/[^/]+(\/.*)$/.exec(c.req.url)?.[1] ?? "/";
    return services.forward(c.req.param("name"), target, c.req.raw);
  });
  return app;
}
