import { MCP_LIMITS, type McpAnswer } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { CallFailed, ServerError } from "./call-failed.ts";
import type { ListedTools } from "./list-tools.ts";
import { isObject } from "./message.ts";
import { CALL_FILES } from "./request-file.ts";

/** What a call has come to, with the text of what is too large to stand in its document. */
export interface CallAnswer {
  readonly answer: McpAnswer;
  readonly content: string | null;
}

export const toolsAnswer = ({ pages, tools, nameless }: ListedTools): CallAnswer => ({
  answer: { kind: "tools", pages, tools: [...tools], ...(nameless === 0 ? {} : { nameless }) },
  content: null,
});

/** @param raw the result as it came */
export function resultAnswer(raw: JsonObject): CallAnswer {
  const { _meta, resultType: _type, ...result } = raw;
  const text = JSON.stringify(result);
  const size_bytes = Buffer.byteLength(text);
  const isLarge = size_bytes > MCP_LIMITS.inlineBytes;
  const meta = isObject(_meta) && Buffer.byteLength(JSON.stringify(_meta)) <= MCP_LIMITS.inlineBytes ? _meta : null;
  const content = isLarge ? { name: CALL_FILES.content, size_bytes, sha256: sha256Hex(text) } : null;
  const common = { kind: "result", is_error: result["isError"] === true, meta, size_bytes } as const;
  return {
    answer: { ...common, result: isLarge ? null : result, content, preview: isLarge ? previewOf(result, text) : null },
    content: isLarge ? text : null,
  };
}

export function errorAnswer(error: unknown): CallAnswer {
  if (error instanceof ServerError) {
    const { code, message, data } = error;
    // What does not fit the document is left out; code and message say what it was.
    const fits = data !== undefined && Buffer.byteLength(JSON.stringify(data)) <= MCP_LIMITS.inlineBytes;
    return { answer: { kind: "error", error: { code, message, ...(fits ? { data } : {}) } }, content: null };
  }
  if (error instanceof CallFailed) return { answer: { kind: "failure", reason: error.reason, message: error.message }, content: null };
  throw error;
}

/** The beginning of what a result says to people, else of its JSON. */
function previewOf(result: JsonObject, text: string): string {
  const blocks = Array.isArray(result["content"]) ? result["content"] : [];
  const said = blocks.find((block) => isObject(block) && typeof block["text"] === "string") as { readonly text: string } | undefined;
  return (said?.text ?? text).slice(0, MCP_LIMITS.previewLength).toWellFormed();
}
