import { Hono } from "hono";
import { Health } from "./answers.ts";
import { json, mount, type Operation, operation } from "./operation.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { eventRoutes } from "./routes/events.ts";
import { inputRoutes } from "./routes/inputs.ts";
import { jobRoutes } from "./routes/jobs.ts";
import { keyRoutes } from "./routes/keys.ts";
import { kindSubmissionRoutes } from "./routes/kind-submissions.ts";
import { lineageRoutes } from "./routes/lineage.ts";
import { linkRoutes } from "./routes/link.ts";
import { logRoutes } from "./routes/logs.ts";
import { metricsRoute } from "./routes/metrics.ts";
import { openApiRoute } from "./routes/open-api.ts";
import { pipelineRoutes } from "./routes/pipelines.ts";
import { progressRoutes } from "./routes/progress.ts";
import { queueRoutes } from "./routes/queue.ts";
import { schedulerRoutes } from "./routes/scheduler.ts";
import { submissionRoutes } from "./routes/submission.ts";
import { taskRoutes } from "./routes/tasks.ts";
import { withProblems } from "./with-problems.ts";
import type { WorkerServices } from "./worker-services.ts";

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
  openApiRoute("openApi", "This document", async () => {
    const { openApiDocument } = await import("./openapi.ts");
    return openApiDocument(workerOperations(services), { title: "clio-relay worker", version: services.version }, { worker: true });
  }),
  metricsRoute("metrics", () => services.metrics()),
  ...linkRoutes(services),
  ...keyRoutes(services),
  ...submissionRoutes(services),
  ...inputRoutes(services),
  ...pipelineRoutes(services),
  ...submissionRoutes(services).flatMap(kindSubmissionRoutes),
  ...jobRoutes(services),
  ...eventRoutes(services),
  ...taskRoutes(services),
  ...progressRoutes(services),
  ...logRoutes(services),
  ...artifactRoutes(services),
  ...lineageRoutes(services),
  ...queueRoutes(services),
  ...schedulerRoutes(services),
];

/**
 * The HTTP app of one cluster's worker.
 *
 * @param report gets failures that are not RelayErrors, for the process's log
 */
export function workerApp(services: WorkerServices, report: (error: unknown) => void): Hono {
  const app = new Hono();
  withProblems(app, services.version, report);
  mount(app, workerOperations(services));
  return app;
}
