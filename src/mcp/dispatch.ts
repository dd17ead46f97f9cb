import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { answerOf, failureAnswer, type ToolAnswer } from "./answer.ts";
import { isOf, TOOLS } from "./catalogue.ts";
import { JSON_BOUNDS, refuseLarge } from "./json-bounds.ts";
import { InputNeeded, type Profile, type Submitted, type Tool, type ToolCall } from "./tool.ts";

/** Issues of arguments that one answer shows. */
const ISSUES = 10;
/** Of these, how many its sentence has. */
const SHOWN = 3;

/**
 * The tool of a name, in a profile. Another profile's tool is none.
 *
 * @throws RelayError tool_not_found
 */
export function toolOf(profile: Profile, name: string, tools: readonly Tool[] = TOOLS): Tool {
  const tool = tools.find((one) => one.name === name);
  if (tool !== undefined && isOf(profile, tool)) return tool;
  const shown = name.slice(0, 128).toWellFormed();
  throw new RelayError("tool_not_found", `there is no tool ${JSON.stringify(shown)}`, { tool: shown });
}

/** Arguments as a tool takes them. What is null is left out: many clients send what they leave open as null. @throws RelayError request_validation_failed */
export function argumentsOf(tool: Tool, given: Readonly<Record<string, unknown>>): unknown {
  refuseLarge(given, JSON_BOUNDS.argumentBytes, "the arguments");
  if (tool.read !== undefined) return tool.read(given);
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const result = v.safeParse(tool.input, present, { abortPipeEarly: true });
  if (result.success) return result.output;
  throw argumentsProblem(tool.name, result.issues, { taken: argumentNames(tool.input) });
}

const argumentNames = (input: Tool["input"]): readonly string[] => ("entries" in input ? Object.keys(input.entries as object) : []);

const NO_SUCH = "there is no such argument";

/** What is wrong about one, in words for whoever gave it. */
function worded({ type, expected, received, message }: v.BaseIssue<unknown>): string {
  if (type === "strict_object" && expected === "never") return NO_SUCH;
  if (type === "strict_object" && received === "undefined") return "it is missing";
  return message;
}

/** What is wrong about arguments. @param below the member that they are, where they are one @param taken names of those that there are, for who gives another */
export function argumentsProblem(
  tool: string,
  found: readonly v.BaseIssue<unknown>[],
  { below = "", taken = [] }: { readonly below?: string; readonly taken?: readonly string[] } = {},
): RelayError {
  const issues = found.slice(0, ISSUES).map((issue) => {
    const path = [below, v.getDotPath(issue) ?? ""].filter((part) => part !== "").join(".");
    return { path, message: worded(issue).slice(0, 300) };
  });
  const what = issues.slice(0, SHOWN).map(({ path, message }) => (path === "" ? message : `${path}: ${message}`));
  const more = found.length > SHOWN ? [`and ${found.length - SHOWN} more`] : [];
  const isUnknown = taken.length > 0 && issues.some(({ path, message }) => message === NO_SUCH && !path.includes("."));
  const text = `the arguments of ${tool} do not fit: ${[...what, ...more].join("; ") || "they are none"}`;
  return new RelayError("request_validation_failed", text, { issues }, isUnknown ? `it takes ${taken.join(", ")}` : undefined);
}

/** Run a tool. Whatever fails is an answer, which the agent reads. */
export async function runTool(tool: Tool, given: Readonly<Record<string, unknown>>, call: ToolCall): Promise<ToolAnswer> {
  try {
    const output = await tool.run(argumentsOf(tool, given), call);
    return answerOf(output, tool.failed?.(output) ?? false, tool.content?.(output));
  } catch (error) {
    if (call.signal.aborted || error instanceof InputNeeded) throw error;
    return failureAnswer(error);
  }
}

/** The same of a tool that submits, up to where its job is in the queue; what keeps it from there is an answer. Null: it is answered without a job. */
export async function submitTool(
  tool: Tool & Required<Pick<Tool, "submit">>,
  given: Readonly<Record<string, unknown>>,
  call: ToolCall,
): Promise<{ readonly submitted: Submitted } | { readonly refused: ToolAnswer } | null> {
  try {
    const submitted = await tool.submit(argumentsOf(tool, given), call);
    return submitted === null ? null : { submitted };
  } catch (error) {
    if (error instanceof InputNeeded) throw error;
    return { refused: failureAnswer(error) };
  }
}
