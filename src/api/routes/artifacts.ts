import { Artifact } from "../../domain/artifact.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { contentOf } from "../content-body.ts";
import { json, type Operation, operation } from "../operation.ts";
import { CONDITIONS, contentHeaders, wantedOf } from "../range.ts";
import type { WorkerServices } from "../worker-services.ts";

/** Artifacts and their content. */
export const artifactRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;
  return [
    operation({
      method: "get",
      path: "/jobs/:id/artifacts",
      id: "listArtifacts",
      summary: "What the job left behind",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("artifacts", Artifact) },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        const { items, ...page } = await store.artifacts(param("id"), query);
        return json({ artifacts: items, ...page });
      },
    }),
    operation({
      method: "get",
      path: "/artifacts/:id",
      id: "getArtifact",
      summary: "The artifact record",
      answer: { kind: "json", schema: Artifact },
      errors: ["artifact_not_found"],
      handler: async ({ param }) => json(await store.artifact(param("id"))),
    }),
    operation({
      method: "get",
      path: "/artifacts/:id/content",
      id: "readArtifact",
      summary: "The artifact's bytes, verified on the way",
      headers: CONDITIONS,
      answer: { kind: "bytes", status: [200, 206, 304] },
      errors: ["artifact_not_found", "artifact_changed", "artifact_unreadable", "precondition_failed", "range_not_satisfiable"],
      handler: async ({ c, param }) => {
        const artifact = await store.artifact(param("id"));
        const etag = `"${artifact.sha256}"`;
        const range = wantedOf((name) => c.req.header(name), artifact.size_bytes, etag);
        if (range === "unchanged") return new Response(null, { status: 304, headers: { etag } });
        // HEAD asks for the headers only: nothing is opened for it.
        const part = range ?? { start: 0, end: artifact.size_bytes };
        const head = c.req.raw.method === "HEAD";
        const body = head ? null : await contentOf(await services.artifacts.open(artifact, part), part.end - part.start);
        return new Response(body, {
          status: range === null ? 200 : 206,
          headers: { ...contentHeaders(artifact.size_bytes, range, etag), "content-type": "application/octet-stream" },
        });
      },
    }),
  ];
};
