import { Hono } from "hono";
import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { json, mount, type Operation, operation } from "./operation.ts";
import { problemResponse } from "./problem.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { eventRoutes } from "./routes/events.ts";
import { jobRoutes } from "./routes/jobs.ts";
import { logRoutes } from "./routes/logs.ts";
import { queueRoutes } from "./routes/queue.ts";
import { submissionRoutes } from "./routes/submission.ts";
import { taskRoutes } from "./routes/tasks.ts";
import type { WorkerServices } from "./worker-services.ts";

const Health = v.strictObject({ ok: v.literal(true), auth: v.boolean(), version: v.string(), cluster: v.string() });

/** Every operation of a worker's app, in the order of the OpenAPI document. */
export const workerOperations = (services: WorkerServices): Operation[] => [
  operation({
    method: "get",
    path: "/healthz",
    id: "health",
    summary: "Whether the worker answers",
    answer: { kind: "json", schema: Health },
    handler: () => json({ ok: true, auth: false, version: services.version, cluster: services.cluster }),
  }),
  ...submissionRoutes(services),
  ...jobRoutes(services),
  ...eventRoutes(services),
  ...taskRoutes(services),
  ...logRoutes(services),
  ...artifactRoutes(services),
  ...queueRoutes(services),
];

/** Answer unknown routes and failures with problem documents, and mark each answer with the version. */
export function withProblems(app: Hono, version: string, report: (error: unknown) => void): void {
  const headers = { "clio-relay-version": version };
  app.use(async (c, next) => {
    await next();
    c.res.headers.set("clio-relay-version", version);
  });
  app.notFound((c) => problemResponse(new RelayError("route_not_found", `no route ${c.req.method} ${c.req.path.slice(0, 200)}`), headers));
  app.onError((error, c) => {
    // Nobody is left to be answered.
    if (c.req.raw.signal.aborted) return new Response(null, { status: 499 });
    if (!(error instanceof RelayError)) report(error);
    return problemResponse(error, headers);
  });
}

/**
 * The HTTP app of one cluster's worker.
 *
 * @param report gets failures that are not RelayErrors, for the process's log
 */
export function workerApp(services: WorkerServices, report: (error: unknown) => void): Hono {
  const app = new Hono();
  withProblems(app, services.version, report);
  const operations = workerOperations(services);
  mount(app, operations);
  app.get("/openapi.json", async () => {
    const { openApiDocument } = await import("./openapi.ts");
    return json(openApiDocument(operations, { title: "clio-relay worker", version: services.version }));
  });
  return app;
}
