import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { EdgeCursor, edgeCursor, edgeSequence, type UsedArtifactRef } from "../../domain/lineage.ts";
import type { Page } from "../../domain/page.ts";
import { whole } from "../../domain/query.ts";
import { NewTransform, TransformRef } from "../../domain/transform.ts";
import { edgePage } from "../answers.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";

const EdgeQuery = v.strictObject({
  cursor: v.optional(EdgeCursor, edgeCursor(1)),
  limit: v.optional(whole(1, LIMITS.pageMax), String(LIMITS.pageDefault)),
});
type EdgeQuery = v.InferOutput<typeof EdgeQuery>;

/** A page of the store as it is read and answered with cursors that say nothing. */
async function edges(
  key: string,
  { cursor, limit }: EdgeQuery,
  read: (page: { cursor: number; limit: number }) => Promise<Page<UsedArtifactRef>>,
) {
  const { items, next_cursor, total } = await read({ cursor: edgeSequence(cursor), limit });
  return json({ [key]: items, cursor, limit, next_cursor: edgeCursor(next_cursor), total });
}

/** What jobs use and who uses what they left; what they did to it. */
export const lineageRoutes = ({ store }: WorkerServices): Operation[] => [
  operation({
    method: "get",
    path: "/jobs/:id/used-artifacts",
    id: "listUsedArtifacts",
    summary: "The artifacts that the job uses",
    query: EdgeQuery,
    answer: { kind: "json", schema: edgePage("used_artifacts") },
    errors: ["job_not_found"],
    handler: ({ param, query }) => edges("used_artifacts", query, (page) => store.usedArtifacts(param("id"), page)),
  }),
  operation({
    method: "get",
    path: "/artifacts/:id/used-by",
    id: "listUsedBy",
    summary: "The jobs that use the artifact",
    query: EdgeQuery,
    answer: { kind: "json", schema: edgePage("used_by") },
    errors: ["artifact_not_found"],
    handler: ({ param, query }) => edges("used_by", query, (page) => store.usedBy(param("id"), page)),
  }),
  operation({
    method: "get",
    path: "/jobs/:id/transform",
    id: "getTransform",
    summary: "What the job did to its inputs; null until it is recorded",
    answer: { kind: "json", schema: v.nullable(TransformRef) },
    errors: ["job_not_found"],
    handler: async ({ param }) => json(await store.transform(param("id"))),
  }),
  operation({
    method: "post",
    path: "/jobs/:id/transform",
    id: "recordTransform",
    summary: "Record what the job did to its inputs, once; the same again is answered with what is recorded",
    body: NewTransform,
    answer: { kind: "json", schema: TransformRef, status: [201, 200] },
    errors: ["job_not_found", "transform_refused", "transform_conflict", "storage_admission_refused"],
    handler: async ({ param, body }) => {
      if (body.job_id !== undefined && body.job_id !== param("id")) {
        throw new RelayError("transform_refused", `the transform is of ${body.job_id}`, { job_id: body.job_id });
      }
      const { transform, existing } = await store.recordTransform(param("id"), body);
      return json(transform, existing ? 200 : 201);
    },
  }),
];
