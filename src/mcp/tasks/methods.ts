import { MissingRequiredClientCapabilityError, ProtocolError, type Server, type ServerContext } from "@modelcontextprotocol/server";
import * as v from "valibot";
import { isRelayError } from "../../domain/errors.ts";
import { protocolError } from "../protocol-error.ts";
import { InputResponses } from "./inputs.ts";
import type { Tasks } from "./projection.ts";

/** The extension's name in capabilities (SEP-2663). */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const INVALID_PARAMS = -32602;

/** Whether a request's own metadata declare the extension. @param meta `_meta` of its params, or what the SDK lifted out of them */
export function declaresTasks(meta: unknown): boolean {
  const extensions = member(member(meta, CAPABILITIES), "extensions");
  return typeof member(extensions, TASKS_EXTENSION) === "object";
}

const member = (of: unknown, name: string): unknown =>
  of !== null && typeof of === "object" && Object.hasOwn(of, name) ? ((of as Record<string, unknown>)[name] ?? undefined) : undefined;

export const missingTasks = (): MissingRequiredClientCapabilityError =>
  new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } });

const TaskId = v.pipe(v.string(), v.minLength(1), v.maxLength(256));
const OneTask = v.looseObject({ taskId: TaskId });

/** What is no task is invalid, as SEP-2663 has it, whatever else a job that is not there is. */
export function taskFailure(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  if (isRelayError(error, "job_not_found"))
    return new ProtocolError(INVALID_PARAMS, `Task not found: ${error.message}`, { reason: error.code, retryable: false });
  return protocolError(error);
}

/** Serve tasks/get, tasks/update and tasks/cancel on a server of 2026-07-28. */
export function serveTasks(server: Server, tasks: Tasks): void {
  const serve =
    <T>(work: (id: string, ctx: ServerContext) => Promise<T>) =>
    async ({ taskId }: v.InferOutput<typeof OneTask>, ctx: ServerContext) => {
      if (!declaresTasks(ctx.mcpReq.envelope)) throw missingTasks();
      try {
        return await work(taskId, ctx);
      } catch (error) {
        throw taskFailure(error);
      }
    };
  const done = { resultType: "complete" };
  server.setRequestHandler(
    "tasks/get",
    { params: OneTask },
    serve(async (id, ctx) => ({ ...done, ...(await tasks.get(id, ctx.mcpReq.signal)) })),
  );
  server.setRequestHandler(
    "tasks/update",
    { params: OneTask },
    serve(async (id, ctx) => {
      // The SDK takes them out of the params.
      const given = v.safeParse(InputResponses, ctx.mcpReq.inputResponses ?? {});
      if (!given.success) throw new ProtocolError(INVALID_PARAMS, "inputResponses are objects by key");
      await tasks.update(id, given.output, ctx.mcpReq.signal);
      return done;
    }),
  );
  server.setRequestHandler(
    "tasks/cancel",
    { params: OneTask },
    serve(async (id, ctx) => {
      await tasks.cancel(id, ctx.mcpReq.signal);
      return done;
    }),
  );
}
