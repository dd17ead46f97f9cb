import {
  type CallToolResult,
  inputRequired,
  type JSONRPCRequest,
  type Result,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { ToolAnswer } from "./answer.ts";
import { runTool, submitTool, toolOf } from "./dispatch.ts";
import { INSTRUCTIONS, servePrompts } from "./prompts.ts";
import { protocolError } from "./protocol-error.ts";
import { serveResources } from "./resources/methods.ts";
import type { McpService } from "./service.ts";
import { declaresTasks, missingTasks, serveTasks, TASKS_EXTENSION } from "./tasks/methods.ts";
import { seedOf } from "./tasks/projection.ts";
import { InputNeeded, type Submitted, type Tool, type ToolCall } from "./tool.ts";

/** Meta of tools/list: SHA-256 over what it lists. */
const CATALOG_REVISION = "clio-relay/catalog-revision";

type Era = "legacy" | "modern";
type Handler = (request: JSONRPCRequest, ctx: ServerContext) => Promise<Result>;

/** Carries a task past what the SDK does with the result of a tool: there is no content yet. */
class TaskAnswer extends Error {
  constructor(readonly answer: Result) {
    super("answered with a task");
  }
}

class RelayServer extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const wrapped = super._wrapHandler(method, handler);
    if (method !== "tools/call") return wrapped;
    return async (request, ctx) => {
      try {
        return await wrapped(request, ctx);
      } catch (thrown) {
        if (thrown instanceof TaskAnswer) return thrown.answer;
        throw thrown;
      }
    };
  }
}

/** One server of the protocol: for a connection, or of 2026-07-28 over HTTP for a request. */
export function relayServer(service: McpService, era: Era): Server {
  const server = new RelayServer(
    { name: "clio-relay", title: "clio-relay", version: service.version },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true },
        prompts: {},
        completions: {},
        ...(era === "modern" ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
      },
      instructions: INSTRUCTIONS,
    },
  );
  server.onerror = service.onFault;
  server.setRequestHandler("tools/list", async (_request, ctx) => {
    const { tools, revision } = await service.listed(ctx.mcpReq.signal);
    return { tools: tools as never, _meta: { [CATALOG_REVISION]: revision } };
  });
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    const tool = findTool(service, params.name);
    const given = params.arguments ?? {};
    const call = callOf(service, ctx);
    const withTask = era === "modern" && declaresTasks(ctx.mcpReq.envelope);
    try {
      if (withTask && hasSubmit(tool)) {
        const outcome = await submitTool(tool, given, call);
        if ("submitted" in outcome) throw new TaskAnswer(birth(outcome.submitted));
        return asResult(outcome.refused);
      }
      if (tool.taskOnly === true) throw missingTasks();
      return asResult(await runTool(tool, given, call));
    } catch (thrown) {
      if (thrown instanceof InputNeeded) return inputRequired({ inputRequests: thrown.requests as never });
      throw thrown;
    }
  });
  serveResources(server, service, era);
  servePrompts(server, service);
  if (era === "modern") serveTasks(server, service.tasks);
  return server;
}

const hasSubmit = (tool: Tool): tool is Tool & Required<Pick<Tool, "submit">> => tool.submit !== undefined;

const asResult = (answer: ToolAnswer): CallToolResult => answer as unknown as CallToolResult;

/** What a call is answered with whose job is in the queue (SEP-2663, CreateTaskResult). */
const birth = ({ job }: Submitted): Result => ({ resultType: "task", ...seedOf(job) });

function findTool(service: McpService, name: string): Tool {
  try {
    return toolOf(service.profile, name, service.tools);
  } catch (error) {
    throw protocolError(error);
  }
}

function callOf({ profile, clusters, now }: McpService, ctx: ServerContext): ToolCall {
  const token = ctx.mcpReq._meta?.progressToken;
  return {
    profile,
    clusters,
    now,
    signal: ctx.mcpReq.signal,
    responses: ctx.mcpReq.inputResponses ?? null,
    wantsProgress: token !== undefined,
    progress(progress, message) {
      if (token === undefined || ctx.mcpReq.signal.aborted) return;
      const params = { progressToken: token, progress, message: message.slice(0, 500).toWellFormed() };
      // Whoever does not hear of it learns it from the answer.
      ctx.mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
    },
  };
}
