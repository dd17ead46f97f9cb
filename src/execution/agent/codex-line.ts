import * as v from "valibot";
import type { EmitLine } from "../../domain/emit-line.ts";
import { NewProgress } from "../../domain/progress.ts";
import { NewTaskEvent, type NewTaskEventInput } from "../../domain/task.ts";
import { refused } from "../emit-line.ts";

/** Of a text that becomes a detail, in UTF-16 units. */
const DETAIL_MAX = 16_384;
const SUMMARY_MAX = 1_000;
const PATHS_MAX = 1_000;

const word = v.fallback(v.string(), "");
const number = v.fallback(v.nullable(v.number()), null);

/** Members that are read of an item; each kind has some of them. */
const Item = v.object({
  id: word,
  type: v.string(),
  text: word,
  command: word,
  aggregated_output: word,
  exit_code: number,
  status: word,
  server: word,
  tool: word,
  query: word,
  message: word,
  changes: v.fallback(v.array(v.object({ path: v.string(), kind: word })), []),
  items: v.fallback(v.array(v.object({ text: word, completed: v.fallback(v.boolean(), false) })), []),
});
type Item = v.InferOutput<typeof Item>;

/** One line of `codex exec --json` (its ThreadEvent), as far as it is read. */
const Line = v.object({
  type: v.string(),
  thread_id: word,
  message: word,
  error: v.fallback(v.nullable(v.object({ message: word })), null),
  usage: v.fallback(v.nullable(v.object({ input_tokens: number, cached_input_tokens: number, output_tokens: number })), null),
  item: v.fallback(v.nullable(Item), null),
});
type Line = v.InferOutput<typeof Line>;
type Made = NewTaskEventInput | { readonly plan: Item["items"] };

const decoder = new TextDecoder("utf-8", { fatal: true });

/** What a line says: a task event, progress of a plan, or nothing that is known (null); `refused` for what is no JSON object. */
export function codexLine(bytes: Uint8Array): EmitLine | null {
  let value: unknown;
  try {
    const text = decoder.decode(bytes);
    if (text.trim() === "") return null;
    value = JSON.parse(text);
  } catch {
    return refused("the line is not JSON");
  }
  const line = v.safeParse(Line, value);
  if (!line.success) return refused("the line is no event: a JSON object with a type");
  const made = line.output.item === null ? ofThread(line.output) : ofItem(line.output.type, line.output.item);
  if (made === null) return null;
  return "plan" in made ? planLine(made.plan) : taskLine(made);
}

function ofThread({ type, thread_id, message, error, usage }: Line): Made | null {
  switch (type) {
    case "thread.started":
      return said("agent.thread", "thread", `thread ${thread_id}`, "running", { thread_id });
    case "turn.completed":
      return said("agent.turn", "turn", "a turn has ended", "succeeded", usage === null ? {} : { ...usage });
    case "turn.failed":
    case "error":
      return { ...said("agent.error", "error", error?.message || message || "the turn has failed", "error") };
    default:
      return null;
  }
}

function ofItem(type: string, item: Item): Made | null {
  const started = type === "item.started";
  const completed = type === "item.completed";
  if (item.type === "todo_list") return started || completed || type === "item.updated" ? { plan: item.items } : null;
  if (!started && !completed) return null;
  const status = started ? "running" : failed(item) ? "error" : "succeeded";
  switch (item.type) {
    case "command_execution": {
      const code = item.exit_code === null ? {} : { exit_code: item.exit_code };
      return {
        ...said("agent.command", "command", item.command, status, { item: item.id, ...code }),
        ...detail(item.aggregated_output.slice(-DETAIL_MAX)),
      };
    }
    case "mcp_tool_call":
      return said("agent.tool", "tool", `${item.server} ${item.tool}`, status, { item: item.id, server: item.server, tool: item.tool });
    case "file_change":
      return completed ? changed(item, status) : null;
    case "agent_message":
    case "reasoning": {
      const kind = item.type === "reasoning" ? "reasoning" : "message";
      return completed ? { ...said(`agent.${kind}`, kind, item.text.trim().split("\n")[0]!, "running"), ...detail(item.text) } : null;
    }
    case "web_search":
      return completed ? said("agent.search", "search", item.query, "succeeded") : null;
    case "error":
      return completed ? said("agent.error", "error", item.message, "error") : null;
    default:
      return null;
  }
}

const failed = ({ status, exit_code }: Item): boolean =>
  status === "failed" || status === "declined" || (exit_code !== null && exit_code !== 0);

function changed({ id, changes }: Item, status: "error" | "succeeded" | "running"): NewTaskEventInput {
  const paths = changes.map(({ path }) => path).filter((path) => path !== "" && path.length <= 4_096);
  const summary = changes.length === 1 ? `${changes[0]!.kind} ${changes[0]!.path}` : `${changes.length} files`;
  return { ...said("agent.files", "files", summary, status, { item: id }), path_refs: paths.slice(0, PATHS_MAX) };
}

function said(
  event_type: string,
  label: string,
  summary: string,
  status: NonNullable<NewTaskEventInput["status"]>,
  metadata: NonNullable<NewTaskEventInput["metadata"]> = {},
): NewTaskEventInput {
  return { event_type, label, summary: (summary.slice(0, SUMMARY_MAX) || label).toWellFormed(), status, metadata };
}

const detail = (text: string): { detail?: string } => (text === "" ? {} : { detail: text.slice(0, DETAIL_MAX).toWellFormed() });

function taskLine(input: NewTaskEventInput): EmitLine {
  const parsed = v.safeParse(NewTaskEvent, input);
  return parsed.success ? { type: "task-event", event: parsed.output } : refused(parsed.issues[0].message);
}

function planLine(steps: Item["items"]): EmitLine | null {
  if (steps.length === 0) return null;
  const done = steps.filter(({ completed }) => completed).length;
  const next =
    steps
      .find(({ completed }) => !completed)
      ?.text.slice(0, SUMMARY_MAX)
      .toWellFormed() || null;
  const parsed = v.safeParse(NewProgress, { label: "plan", current: done, total: steps.length, unit: "step", message: next });
  return parsed.success ? { type: "progress", progress: parsed.output } : refused(parsed.issues[0].message);
}
