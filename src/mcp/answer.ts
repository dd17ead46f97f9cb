import { problemOf } from "../api/problem.ts";
import { isRelayError, RelayError } from "../domain/errors.ts";
import { inUnicode } from "../lib/text/unicode-json.ts";
import { forAgent } from "./hints.ts";
import type { Content } from "./tool.ts";

/** CallToolResult of the protocol, as far as it is used here. */
export interface ToolAnswer {
  readonly content: readonly Content[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
  readonly [member: string]: unknown;
}

/** What a tool found, for programs and as the same text for those that read text only. */
export const answerOf = (output: Readonly<Record<string, unknown>>, isError = false, content?: readonly Content[]): ToolAnswer => ({
  content: content ?? [{ type: "text", text: JSON.stringify(inUnicode(output)) }],
  structuredContent: output,
  isError,
});

/** What kept a tool from it: its problem document. */
export const failureAnswer = (error: unknown): ToolAnswer => ({
  content: [{ type: "text", text: JSON.stringify(problemOf(asRelayError(error))) }],
  isError: true,
});

/** What is thrown while something is done for a client, in words that it may see. */
export function asRelayError(error: unknown): RelayError {
  if (isRelayError(error)) return forAgent(error);
  // A connection that broke while its answer was read.
  if (error instanceof Error && "code" in error && !("syscall" in error)) {
    return new RelayError("link_down", "the answer broke off", {}, undefined, { cause: error });
  }
  return new RelayError("internal_error", "an unexpected failure", {}, "this is a fault of clio-relay", { cause: error });
}
