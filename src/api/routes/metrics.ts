import { EXPOSITION_TYPE } from "../../lib/text/exposition.ts";
import { type Operation, operation } from "../operation.ts";

/** GET /metrics. @param id of the operation @param text in Prometheus' text format */
export const metricsRoute = (id: string, text: () => Promise<string>): Operation =>
  operation({
    method: "get",
    path: "/metrics",
    id,
    summary: "What is counted, in Prometheus' text format",
    answer: { kind: "text", type: "text/plain" },
    handler: async () => new Response(await text(), { headers: { "content-type": EXPOSITION_TYPE, "cache-control": "no-store" } }),
  });
