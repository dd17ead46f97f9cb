import { PageQuery, pageOf } from "../../domain/page.ts";
import { NewProgress, Progress } from "../../domain/progress.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";

/** Progress reports of a job. */
export const progressRoutes = ({ store }: WorkerServices): Operation[] => [
  operation({
    method: "get",
    path: "/jobs/:id/progress",
    id: "listProgress",
    summary: "Progress reports of the job",
    query: PageQuery,
    answer: { kind: "json", schema: pageOf("progress", Progress) },
    errors: ["job_not_found"],
    handler: async ({ param, query }) => {
      const { items, ...page } = await store.progress(param("id"), query);
      return json({ progress: items, ...page });
    },
  }),
  operation({
    method: "post",
    path: "/jobs/:id/progress",
    id: "recordProgress",
    summary: "Report progress",
    body: NewProgress,
    answer: { kind: "json", schema: Progress, status: [201] },
    errors: ["job_not_found", "storage_admission_refused"],
    handler: async ({ param, body }) => json(await store.recordProgress(param("id"), body), 201),
  }),
];
