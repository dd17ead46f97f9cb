import * as v from "valibot";
import type { EmitLine } from "../domain/emit-line.ts";
import { LIMITS } from "../domain/limits.ts";
import { NewProgress } from "../domain/progress.ts";
import { NewTaskEvent } from "../domain/task.ts";
import { parsedInUnicode } from "../lib/text/unicode-json.ts";

const REASON_MAX_LENGTH = 500;

export const refused = (reason: string): EmitLine => ({ type: "refused", reason: reason.slice(0, REASON_MAX_LENGTH) });

export const tooLong = (): EmitLine => refused(`the line is longer than ${LIMITS.emitLineBytes} bytes`);

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * Read one line, without its newline: a JSON object (RFC 8259) whose `type` is `progress` or `task-event` and whose other members
 * are those of the report; lone halves of surrogate pairs are U+FFFD. Whatever does not fit becomes `refused` with a reason; null for a line of white space.
 */
export function parseEmitLine(bytes: Uint8Array): EmitLine | null {
  if (bytes.length > LIMITS.emitLineBytes) return tooLong();
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return refused("the line is not UTF-8");
  }
  if (text.trim() === "") return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refused("the line is not JSON");
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return refused("the line is not a JSON object");
  try {
    const { type, ...members } = parsedInUnicode(value, text) as Record<string, unknown>;
    if (type === "progress") {
      const parsed = v.safeParse(NewProgress, members);
      return parsed.success ? { type, progress: parsed.output } : refused(misfit(parsed.issues[0]));
    }
    if (type === "task-event") {
      const parsed = v.safeParse(NewTaskEvent, members);
      return parsed.success ? { type, event: parsed.output } : refused(misfit(parsed.issues[0]));
    }
    return refused("type is neither progress nor task-event");
  } catch (error) {
    if (error instanceof RangeError) return refused("the line is nested too deeply");
    throw error;
  }
}

function misfit(issue: v.BaseIssue<unknown>): string {
  return `${v.getDotPath(issue) ?? "the line"}: ${issue.message}`;
}
