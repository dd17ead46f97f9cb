import { PipelineInputs, PipelineQuestion } from "../../domain/pipeline.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";

/** What a client has to know of a pipeline before it is submitted; docs/jarvis.md. */
export const pipelineRoutes = (services: WorkerServices): Operation[] => [
  operation({
    method: "post",
    path: "/jarvis/pipeline-inputs",
    id: "queryPipelineInputs",
    summary: "Which settings of a JARVIS-CD pipeline are files of the submitter's",
    body: PipelineQuestion,
    answer: { kind: "json", schema: PipelineInputs },
    errors: ["jarvis_submission_refused", "engine_unavailable", "payload_too_large"],
    handler: async ({ body }) => json(await services.pipelineInputs(body)),
  }),
];
