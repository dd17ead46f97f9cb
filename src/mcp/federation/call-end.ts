import { answerOf } from "../answer.ts";
import type { EndOf } from "../tasks/projection.ts";
import { jobView } from "../views.ts";
import { callResult } from "./call-result.ts";
import { remoteContent, remoteFailed } from "./remote-call.ts";

/** How the task of a call of an MCP server ends: as the call would have been answered. An error of the server's protocol is the task's. */
export const callEnd: EndOf = async (place, { job }, signal) => {
  if (job.kind !== "mcp_call") return null;
  const mcp_result = await callResult(place, job.job_id, signal);
  if (mcp_result.error !== null) return { error: mcp_result.error };
  const output = {
    ...jobView(place, job),
    idempotency_key: job.idempotency_key,
    existing: false,
    observation: { outcome: "terminal", timeout_seconds: null, scheduler_action: "none", relay_action: "none" },
    mcp_result,
  };
  return { result: answerOf(output, remoteFailed(output), remoteContent(output)) };
};
