import { MCP_LIMITS } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { CallFailed } from "./call-failed.ts";
import type { Dialogue, ReportedProgress } from "./dialogue.ts";
import type { AskedInput, InputRounds } from "./input-rounds.ts";
import { isObject } from "./message.ts";
import type { Session } from "./session.ts";

/** Between two rounds that ask for nothing: the server is busy. */
const BUSY_MS = 250;

export interface ToolCallOptions {
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly inputs: InputRounds;
  readonly onProgress: (report: ReportedProgress) => void;
  readonly signal: AbortSignal;
}

/**
 * Call a tool once, with as many rounds of input as it asks for.
 *
 * @returns the result as it came
 * @throws CallFailed, ServerError, the reason of `signal`
 */
export async function callTool(dialogue: Dialogue, session: Session, options: ToolCallOptions): Promise<JsonObject> {
  const { tool, inputs, onProgress, signal } = options;
  const call = { name: tool, arguments: options.arguments };
  let params: JsonObject = call;
  for (let round = 1; ; round++) {
    const result = await dialogue.request("tools/call", session.params(params), { onProgress, signal });
    const { resultType = "complete", inputRequests, requestState } = result;
    if (!session.modern || resultType === "complete") return result;
    if (resultType !== "input_required")
      throw new CallFailed("protocol_violation", `it answered with a result of type ${String(resultType).slice(0, 64)}`);
    if (round > MCP_LIMITS.inputRounds)
      throw new CallFailed("input_refused", `it asked for input more than ${MCP_LIMITS.inputRounds} times`);
    const responses = await answered(inputRequests, inputs);
    params = {
      ...call,
      ...(responses === null ? {} : { inputResponses: responses }),
      ...(requestState === undefined ? {} : { requestState }),
    };
  }
}

async function answered(requests: unknown, inputs: InputRounds): Promise<JsonObject | null> {
  const asked = isObject(requests) ? Object.entries(requests) : [];
  if (asked.length === 0) {
    await Bun.sleep(BUSY_MS);
    return null;
  }
  const wanted = asked.map(([, request]): AskedInput => {
    const method = isObject(request) ? request["method"] : null;
    const params = isObject(request) ? request["params"] : null;
    if (typeof method !== "string") throw new CallFailed("protocol_violation", "what it asks for names no method");
    return { method, params: isObject(params) ? params : {} };
  });
  const answers = await inputs.ask(wanted);
  return Object.fromEntries(asked.map(([key], index) => [key, answers[index]!]));
}
