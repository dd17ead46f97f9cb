import { createHash, timingSafeEqual } from "node:crypto";
import { Hono } from "hono";
import { ClusterEntry, clusterEntry } from "../config/clusters.ts";
import { RelayError } from "../domain/errors.ts";
import { ClusterList, DesktopHealth, DesktopStatus, LinkList, type LinkStatus, Stopping } from "./desktop-views.ts";
import { json, mount, type Operation, operation } from "./operation.ts";
import { problemResponse } from "./problem.ts";

/** What the desktop's app needs of the process around it. */
export interface DesktopServices {
  readonly version: string;
  /** null on a Unix socket, whose permissions say who may connect; the token and address of a listener on loopback otherwise. */
  readonly access: { readonly token: string; readonly host: string } | null;
  status(): DesktopStatus;
  /** The registered clusters. Throws configuration_error when the registry cannot be read. */
  clusters(): readonly ClusterEntry[];
  /** Add or change an entry; the answer is the entry as it is kept. */
  putCluster(entry: ClusterEntry): Promise<ClusterEntry>;
  /** @throws RelayError cluster_not_found */
  removeCluster(name: string): Promise<ClusterEntry>;
  links(): Promise<LinkStatus[]>;
  /**
   * Send a request on to a cluster's worker and return its answer as it is, while it comes.
   *
   * @param target path and query as the worker's app knows them
   * @throws RelayError cluster_not_found, worker_not_running, link_down
   */
  forward(cluster: string, target: string, request: Request): Promise<Response>;
  stop(): void;
}

/** The desktop's own operations, in the order of the OpenAPI document. */
export const desktopOperations = (services: DesktopServices): Operation[] => [
  operation({
    method: "get",
    path: "/healthz",
    id: "health",
    summary: "Whether the daemon answers",
    answer: { kind: "json", schema: DesktopHealth },
    handler: () => json({ ok: true, auth: services.access !== null, version: services.version }),
  }),
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
    errors: ["configuration_error", "state_conflict"],
    handler: async ({ body }) => json(await services.putCluster(body)),
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
      return json(clusterEntry({ version: 1, clusters: [...services.clusters()] }, name));
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
  operation({
    method: "get",
    path: "/links",
    id: "listLinks",
    summary: "The way to each cluster's worker, as it is now",
    answer: { kind: "json", schema: LinkList },
    errors: ["configuration_error"],
    handler: async () => json({ links: await services.links() }),
  }),
];

/**
 * The HTTP app of the desktop daemon: its own routes, and each cluster's below /clusters/{name}, forwarded unchanged.
 *
 * @param report gets failures that are not RelayErrors, for the process's log
 */
export function desktopApp(services: DesktopServices, report: (error: unknown) => void): Hono {
  const app = new Hono();
  const headers = { "clio-relay-version": services.version };
  app.use(async (c, next) => {
    authorize(services.access, c.req.raw);
    await next();
    // A forwarded answer carries the version of the worker that gave it.
    if (!c.res.headers.has("clio-relay-version")) c.res.headers.set("clio-relay-version", services.version);
  });
  app.notFound((c) => problemResponse(new RelayError("route_not_found", `no route ${c.req.method} ${c.req.path.slice(0, 200)}`), headers));
  app.onError((error, c) => {
    // Nobody is left to be answered.
    if (c.req.raw.signal.aborted) return new Response(null, { status: 499 });
    if (!(error instanceof RelayError)) report(error);
    return problemResponse(error, headers);
  });
  const operations = desktopOperations(services);
  mount(app, operations);
  app.get("/openapi.json", async () => {
    const { openApiDocument } = await import("./openapi.ts");
    return json(openApiDocument(operations, { title: "clio-relay desktop", version: services.version }));
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
 * name resolves to) and, but for /healthz, carry the token.
 */
function authorize(access: DesktopServices["access"], request: Request): void {
  if (access === null) return;
  if (request.headers.get("host") !== access.host) throw new RelayError("host_refused", "the Host header names another server");
  if (new URL(request.url).pathname === "/healthz") return;
  const given = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  const digest = (text: string) => createHash("sha256").update(text).digest();
  // Digests have one length, so that the comparison tells nothing of the token's.
  if (!timingSafeEqual(digest(given), digest(access.token))) {
    throw new RelayError("authentication_required", "the daemon's token is missing or wrong");
  }
}
