import { expect, test } from "bun:test";
import { codexLine } from "../../../src/execution/agent/codex-line.ts";

const read = (value: unknown) => codexLine(new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value)));
const item = (phase: string, of: Record<string, unknown>) => read({ type: `item.${phase}`, item: { id: "item_1", ...of } });

test.each([
  [
    { type: "thread.started", thread_id: "t-1" },
    { event_type: "agent.thread", summary: "thread t-1" },
  ],
  [
    { type: "turn.completed", usage: { input_tokens: 5, cached_input_tokens: 1, output_tokens: 2 } },
    { event_type: "agent.turn", status: "succeeded", metadata: { input_tokens: 5, cached_input_tokens: 1, output_tokens: 2 } },
  ],
  [
    { type: "turn.failed", error: { message: "no quota" } },
    { event_type: "agent.error", status: "error", summary: "no quota" },
  ],
  [
    { type: "error", message: "gone" },
    { event_type: "agent.error", status: "error", summary: "gone" },
  ],
])("%j is a task event", (line, event) => expect(read(line)).toMatchObject({ type: "task-event", event }));

test("a command is told when it starts and when it has ended, with its code and the end of its output", () => {
  const command = { type: "command_execution", command: "bash -lc ls" };
  expect(item("started", { ...command, status: "in_progress", exit_code: null })).toMatchObject({
    event: { event_type: "agent.command", summary: "bash -lc ls", status: "running", detail: null },
  });
  expect(item("completed", { ...command, status: "completed", exit_code: 0, aggregated_output: "a\nb\n" })).toMatchObject({
    event: { status: "succeeded", detail: "a\nb\n", metadata: { item: "item_1", exit_code: 0 } },
  });
  const failed = item("completed", { ...command, status: "failed", exit_code: 2, aggregated_output: `${"x".repeat(20_000)}end` });
  expect(failed).toMatchObject({ event: { status: "error", detail: expect.stringMatching(/^x+end$/) } });
});

test("files, tools, searches, messages and a plan", () => {
  const files = {
    type: "file_change",
    status: "completed",
    changes: [
      { path: "/a", kind: "add" },
      { path: "/b", kind: "update" },
    ],
  };
  expect(item("completed", files)).toMatchObject({ event: { event_type: "agent.files", summary: "2 files", path_refs: ["/a", "/b"] } });
  expect(item("completed", { type: "mcp_tool_call", server: "s", tool: "t", status: "failed" })).toMatchObject({
    event: { event_type: "agent.tool", summary: "s t", status: "error" },
  });
  expect(item("completed", { type: "web_search", query: "q" })).toMatchObject({ event: { event_type: "agent.search", summary: "q" } });
  expect(item("completed", { type: "agent_message", text: "first\nsecond" })).toMatchObject({
    event: { event_type: "agent.message", summary: "first", detail: "first\nsecond" },
  });
  expect(item("completed", { type: "reasoning", text: "" })).toMatchObject({ event: { summary: "reasoning", detail: null } });
  const steps = [
    { text: "one", completed: true },
    { text: "two", completed: false },
  ];
  expect(item("updated", { type: "todo_list", items: steps })).toMatchObject({
    type: "progress",
    progress: { label: "plan", current: 1, total: 2, unit: "step", message: "two" },
  });
});

test.each([
  [{ type: "turn.started" }],
  [{ type: "something.new", item: { id: "1", type: "unheard_of" } }],
  [{ type: "item.updated", item: { id: "1", type: "command_execution", command: "ls" } }],
  [{ type: "item.completed", item: { id: "1", type: "todo_list", items: [] } }],
  ["  "],
])("%j says nothing that is shown", (line) => expect(read(line)).toBeNull());

test.each([["{"], ["null"], ["[]"], ["{}"], [{ type: 5 }], ["[".repeat(100_000)]])("%j is refused", (line) =>
  expect(read(line)).toMatchObject({ type: "refused" }),
);

test("members of another shape than they should have are as if they were not there", () => {
  expect(item("completed", { type: "command_execution", command: 5, exit_code: "0", changes: "none" })).toMatchObject({
    event: { event_type: "agent.command", summary: "command", metadata: { item: "item_1" } },
  });
  expect(codexLine(new Uint8Array([0x22, 0xff, 0x22]))).toMatchObject({ type: "refused" });
});
